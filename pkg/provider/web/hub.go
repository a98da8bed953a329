// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
)

// maxPackage is the maximum size of a hub's answer in bytes: the definition, its readme and its
// versions.
const maxPackage = 8 << 20

// Hub is an Artifact Hub.
type Hub struct {
	// URL is the hub's address, with or without /api/v1.
	URL string
	// Catalog is the repository of packages on the hub; empty or "default" is the public catalog
	// for the kind.
	Catalog string
}

// The names of the kinds of packages.
const (
	HubTask     = "tekton-task"
	HubPipeline = "tekton-pipeline"
)

// packageWord matches a name or a version, which become segments of a path.
var packageWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// Address returns the hub's API address of a package, which is written "name" or "name:version".
func (h Hub) Address(kind, reference string) (string, error) {
	name, version, versioned := strings.Cut(reference, ":")
	if !packageWord.MatchString(name) || versioned && !packageWord.MatchString(version) {
		return "", fault.Invalidf(reasonBadReference, "this is not a name on a hub: write name or name:version, like git-clone:0.9")
	}
	catalog := h.Catalog
	if catalog == "" || catalog == "default" {
		catalog = map[string]string{HubTask: "tekton-catalog-tasks", HubPipeline: "tekton-catalog-pipelines"}[kind]
	}
	base := strings.TrimRight(h.URL, "/")
	if !strings.HasSuffix(base, "/api/v1") {
		base += "/api/v1"
	}
	address := base + "/packages/" + kind + "/" + url.PathEscape(catalog) + "/" + name
	if versioned {
		address += "/" + version
	}
	return address, nil
}

// Package returns the definition of a package at an Address of the hub. An operator configured the
// hub, so it may be at any address that is not refused, and a problem that only its operator can
// fix is an Operator fault.
func (c *Client) Package(ctx context.Context, hub Hub, address string, policy egress.Policy) ([]byte, error) {
	policy.Trusted = egress.HostPort(hub.URL)
	answer, err := c.Get(ctx, address, policy, maxPackage)
	if f := fault.Of(err); f != nil && f.Reason == reasonNotPublic {
		return nil, fault.Operatorf(reasonHubRefuses, "%s", f.Message)
	}
	if err != nil {
		return nil, err
	}
	var packed struct {
		Name string `json:"name"`
		Data *struct {
			ManifestRaw string `json:"manifestRaw"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &packed); err != nil || packed.Name == "" && packed.Data == nil {
		// A hub answers with a package, so this is from something in front of it.
		return nil, fault.Transientf(reasonReferenceUnavailable, "what answers at the hub's address is not an Artifact Hub")
	}
	if packed.Data == nil || packed.Data.ManifestRaw == "" {
		return nil, fault.Invalidf(reasonReferenceNotFound, "the hub has no definition in this package")
	}
	return []byte(packed.Data.ManifestRaw), nil
}
