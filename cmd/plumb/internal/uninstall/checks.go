// SPDX-License-Identifier: Apache-2.0

// Package uninstall removes an installation of Plumbline: it closes the checks that only Plumbline
// can close, and then deletes what the installation consists of.
package uninstall

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// page is how many GitEvents one call reads.
const page = 200

// Pending is an event with checks that are not concluded.
type Pending struct {
	Event, Repository, Ref string
	// Checks are their names; empty if the event is not planned yet.
	Checks []string
	// Settled means that no controller works on the event any more: its checks stay open.
	Settled bool
}

// String returns the line that is printed.
func (p Pending) String() string {
	if len(p.Checks) == 0 {
		return fmt.Sprintf("%s %s: event %s is not planned yet", p.Repository, p.Ref, p.Event)
	}
	return fmt.Sprintf("%s %s: %q of event %s", p.Repository, p.Ref, p.Checks, p.Event)
}

// pending returns the events with open checks, nil if the kind does not exist.
func (u *Uninstaller) pending(ctx context.Context) ([]Pending, error) {
	var all []Pending
	err := kube.Pages(metav1.ListOptions{Limit: page}, func(o metav1.ListOptions) (string, error) {
		list, err := u.Cluster.Own.PlumblineV1alpha1().GitEvents(u.Namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if p, open := pendingOf(&list.Items[i]); open {
				all = append(all, p)
			}
		}
		return list.Continue, nil
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, kube.Failed("listing the GitEvents", err)
	}
	return all, nil
}

// pendingOf returns the open checks of an event. A settled event has some if it waits for an
// approval, or if the Git service did not accept its results.
func pendingOf(e *v1alpha1.GitEvent) (Pending, bool) {
	p := Pending{Event: e.Name, Repository: e.Spec.Repository.URL, Ref: e.Status.Ref, Settled: e.Settled()}
	for _, check := range e.Status.Checks {
		if !check.Concluded && (check.Intent || check.ID != "") {
			p.Checks = append(p.Checks, check.Name)
		}
	}
	if p.Settled {
		return p, len(p.Checks) > 0 && (e.Status.Unreported || e.Status.Disposition == v1alpha1.DispositionPending)
	}
	for i := range e.Status.Runs {
		if run := &e.Status.Runs[i]; run.Result == nil && run.Refused == nil {
			return p, true
		}
	}
	return p, len(p.Checks) > 0 || !e.Status.Plan.Decided()
}

// open returns those of the events that a controller can still close.
func open(all []Pending) (unsettled []Pending) {
	for _, p := range all {
		if !p.Settled {
			unsettled = append(unsettled, p)
		}
	}
	return unsettled
}

// cancelName ends the annotation of the cancellation: no GitEvent has this name.
const cancelName = "plumb-uninstall"

// cancel requests that the controllers cancel the events' runs and report it, as after /cancel. It
// requests it once for each event, and adds the event to requested.
func (u *Uninstaller) cancel(ctx context.Context, events []Pending, requested map[string]bool) error {
	c := v1alpha1.Cancellation{
		Why: "Plumbline is being uninstalled",
		At:  metav1.NewTime(time.Now().UTC().Truncate(time.Second)),
	}
	name, value, err := c.CancelsAs(cancelName)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{name: value}}})
	if err != nil {
		return err
	}
	gitEvents := u.Cluster.Own.PlumblineV1alpha1().GitEvents(u.Namespace)
	for _, event := range events {
		if requested[event.Event] {
			continue
		}
		_, err := gitEvents.Patch(ctx, event.Event, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return kube.Failed("cancelling GitEvent "+event.Event, err)
		}
		requested[event.Event] = true
	}
	return nil
}

// closeChecks waits until the controllers have closed all checks that they can close, and cancels
// the runs first unless they may finish.
func (u *Uninstaller) closeChecks(ctx context.Context) error {
	begun := time.Now()
	var left []Pending
	requested := map[string]bool{}
	err := u.poll(ctx, func(ctx context.Context) (bool, error) {
		all, err := u.pending(ctx)
		if err != nil {
			return false, err
		}
		if left = open(all); len(left) == 0 {
			return true, nil
		}
		if u.CloseChecks == Cancel {
			return false, u.cancel(ctx, left, requested)
		}
		return false, nil
	})
	if wait.Interrupted(err) && len(left) > 0 {
		u.list("Still open", left)
		return fmt.Errorf(
			"%d events still have open checks after %s: see why with kubectl -n %s get gitevents, then run the command "+
				"again; --close-checks=no leaves them open",
			len(left),
			time.Since(begun).Round(u.Poll),
			u.Namespace,
		)
	}
	return err
}

// poll calls done until it returns true, at most for u.Timeout.
func (u *Uninstaller) poll(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return kube.Polling{Every: u.Poll, Timeout: u.Timeout}.Until(ctx, u.say, done)
}

func (u *Uninstaller) list(title string, events []Pending) {
	u.say("%s:", title)
	for _, p := range events {
		u.say("  %s", p)
	}
}

func (u *Uninstaller) say(format string, args ...any) {
	_, _ = fmt.Fprintf(u.Out, format+"\n", args...) // an error of that has no reader
}
