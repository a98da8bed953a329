// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// unused are the granted rights that no scenario needs, each with its reason.
func unused() map[installation.Right]string {
	return map[installation.Right]string{
		{Account: "plumbline-controller", Verb: "delete",
			Resource: "plumbline.dev/repositoryclaims"}: "claims are deleted 24 hours after their Repository",
		{Account: "plumbline-controller", Verb: "patch",
			Resource: "/events"}: "a Kubernetes Event is patched when it repeats, which reasons do not",
		{Account: "plumbline-controller", Verb: "get",
			Resource: "tekton.dev/tasks"}: "asked only when a pod could not be created",
		{Account: "plumbline-receiver", Verb: "patch",
			Resource: "plumbline.dev/gitevents"}: "noted when a delivery comes again an hour after it was recorded",
		{Account: "plumbline-receiver", Verb: "patch",
			Resource: "plumbline.dev/tombstonepages"}: "noted when the delivery of an evicted event comes again an hour later",
	}
}

// auditEvent is the part of audit.k8s.io/v1 Event that is used here.
type auditEvent struct {
	User           struct{ Username string }
	Verb           string
	ObjectRef      *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus struct {
		Code    int
		Message string
	}
}

// checkRights compares the rights of config/ with those that the suite used. No right is missing
// and, if every test has run, none is unused.
func checkRights(log string, everyTest bool) error {
	granted, err := installation.Rights()
	if err != nil {
		return err
	}
	used, refused, err := readAudit(log)
	if err != nil {
		return err
	}
	var faults []string
	for _, message := range refused {
		faults = append(faults, "missing: "+message)
	}
	exempt := unused()
	if !everyTest {
		granted = nil
	}
	for _, right := range granted {
		watched := right
		watched.Verb = "watch"
		if right.Verb == "list" && used[watched] {
			continue // an informer lists when the API server cannot stream the first state
		}
		if !used[right] && exempt[right] == "" {
			faults = append(faults, fmt.Sprintf("in excess: %s may %s %s and never did", right.Account, right.Verb,
				right.Resource))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	slices.Sort(faults)
	return fmt.Errorf("rights of config/:\n%s", strings.Join(slices.Compact(faults), "\n"))
}

// readAudit returns the rights that our ServiceAccounts used and the calls that were refused for
// lack of one. A call that succeeded at another time is left out: a starting API server refuses
// calls until it has read the roles.
func readAudit(log string) (map[installation.Right]bool, []string, error) {
	file, err := os.Open(log)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	used := map[installation.Right]bool{}
	refused, succeeded := map[string]string{}, map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditEvent
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.ObjectRef == nil {
			continue // the last line may be cut
		}
		account := event.User.Username[strings.LastIndex(event.User.Username, ":")+1:]
		if !strings.HasPrefix(account, "plumbline-") || strings.Contains(event.User.Username, ":"+rightsNamespace+"-") {
			continue // rights probes lack rights on purpose
		}
		ref := event.ObjectRef
		used[installation.Right{Account: account, Verb: event.Verb,
			Resource: strings.TrimSuffix(ref.APIGroup+"/"+ref.Resource+"/"+ref.Subresource, "/")}] = true
		verb := strings.Replace(event.Verb, "list", "watch", 1) // an informer lists after a refused watch
		if verb == "create" {
			ref.Name = "" // a refused call names none
		}
		call := fmt.Sprint(event.User.Username, verb, *ref)
		if event.ResponseStatus.Code == 403 && strings.Contains(event.ResponseStatus.Message, "cannot "+event.Verb) {
			refused[call] = event.ResponseStatus.Message
		} else {
			succeeded[call] = true
		}
	}
	maps.DeleteFunc(refused, func(call, _ string) bool { return succeeded[call] })
	return used, slices.Collect(maps.Values(refused)), lines.Err()
}
