// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// maxWhole bounds the manifests in a status uncompressed, in bytes: they are read whole for each
// run, and a text that compresses well must not take much memory for that.
const maxWhole = 1 << 20

// Save stores the manifests and the values of their markers, so that what is created later is what
// was planned now, whatever changes meanwhile. If all manifests fit into the status, it stores them
// in plan, which must be the plan of the status, else in EventPayloads. If a budget of unsettled
// events is exhausted, it returns a Throttled fault with a reason of pkg/flowcontrol/quota.
func (p *StoredPlan) Save(
	ctx context.Context, plan *v1alpha1.Plan, manifests []Manifest, secrets map[string]string,
) error {
	if len(manifests) == 0 {
		return nil
	}
	whole, err := p.whole(plan, manifests)
	if err != nil {
		return err
	}
	packed, err := blob.Pack(list(manifests)...)
	if err != nil {
		return fmt.Errorf("packing the planned PipelineRuns: %w", err)
	}
	digest := strings.TrimPrefix(packed.Digest, "sha256:")[:12]
	var ref v1alpha1.BlobReference
	var chunks []*v1alpha1.EventPayload
	if whole == nil {
		ref, chunks = packed.Chunks(p.event.Namespace, p.event.Name+"-plan-"+digest, p.event.Name)
	}
	if err := p.count(ctx, digest, blob.StoredBytes(chunks), secrets); err != nil {
		return err
	}
	if err := p.saveSecrets(ctx, plan, secrets); err != nil {
		return err
	}
	if whole != nil {
		plan.Manifests = whole
	} else {
		if err := blob.Write(ctx, p.Payloads, chunks); err != nil {
			return fmt.Errorf("storing the plan: %w", err)
		}
		plan.Blobs = append(plan.Blobs, ref)
	}
	for _, manifest := range manifests {
		p.remember(manifest.Name, manifest.JSON)
	}
	return nil
}

// whole returns the manifests of a plan and more manifests in the form that the plan stores; nil if
// they are too many for the status.
func (p *StoredPlan) whole(plan *v1alpha1.Plan, more []Manifest) ([]byte, error) {
	var all []Manifest
	if plan.Manifests != nil {
		held, err := p.unfold(plan.Manifests)
		if err != nil {
			return nil, err
		}
		for _, manifest := range held {
			all = append(all, Manifest{JSON: manifest})
		}
	}
	packed, err := blob.Pack(list(append(all, more...))...)
	if fault.Is(err, fault.Invalid) ||
		err == nil && (len(packed.Stream) >= v1alpha1.MaxManifestBytes || packed.Size > maxWhole) {
		return nil, nil
	}
	return packed.Stream, err
}

// unfold reserves memory for the manifests in a stream of the status, and returns them.
func (p *StoredPlan) unfold(stream []byte) ([]json.RawMessage, error) {
	if err := p.Reserve("manifests", perByte*blob.Size(stream)); err != nil {
		return nil, err
	}
	data, err := blob.Expand(stream)
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	return decode(data)
}

func decode(data []byte) (manifests []json.RawMessage, err error) {
	if err := json.Unmarshal(data, &manifests); err != nil {
		return nil, fmt.Errorf("decoding the plan: %w", err)
	}
	return manifests, nil
}

// list returns a JSON list of the manifests, in parts.
func list(manifests []Manifest) [][]byte {
	var parts [][]byte
	separator := []byte("[")
	for _, manifest := range manifests {
		parts = append(parts, separator, manifest.JSON)
		separator = []byte(",")
	}
	return append(parts, []byte("]"))
}

// Bytes returns how many bytes the manifests of a plan have when they are read.
func Bytes(plan *v1alpha1.Plan) int {
	total := blob.Size(plan.Manifests)
	for _, ref := range plan.Blobs {
		total += int(ref.Size)
	}
	return total
}

func (p *StoredPlan) remember(name string, manifest json.RawMessage) {
	if p.manifests == nil {
		p.manifests = map[string]json.RawMessage{}
	}
	p.manifests[name] = manifest
}

// Manifest returns a planned PipelineRun as it was stored. A missing blob is an error only for the
// PipelineRuns in it.
func (p *StoredPlan) Manifest(ctx context.Context, name string) (*pipelinev1.PipelineRun, error) {
	var missing error
	if _, known := p.manifests[name]; !known {
		if err := p.readStatus(); err != nil {
			return nil, err
		}
	}
	if _, known := p.manifests[name]; !known {
		for _, ref := range p.event.Status.Plan.Blobs {
			err := p.read(ctx, ref)
			if f := fault.Of(err); f != nil && f.Reason == ReasonPayloadMissing {
				missing = err
				continue
			}
			if err != nil {
				return nil, err
			}
		}
	}
	data, ok := p.manifests[name]
	if !ok && missing != nil {
		return nil, missing
	}
	if !ok {
		return nil, fmt.Errorf("the plan has no PipelineRun %s", name)
	}
	manifest := &pipelinev1.PipelineRun{}
	if err := json.Unmarshal(data, manifest); err != nil {
		return nil, fmt.Errorf("decoding the planned PipelineRun %s: %w", name, err)
	}
	return manifest, nil
}

// readStatus reads the manifests in the status.
func (p *StoredPlan) readStatus() error {
	stream := p.event.Status.Plan.Manifests
	if stream == nil {
		return nil
	}
	manifests, err := p.unfold(stream)
	if err != nil {
		return err
	}
	return p.learn(manifests)
}

// read reads the manifests in a blob.
func (p *StoredPlan) read(ctx context.Context, ref v1alpha1.BlobReference) error {
	data, err := p.blob(ctx, ref)
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	manifests, err := decode(data)
	if err != nil {
		return err
	}
	return p.learn(manifests)
}

func (p *StoredPlan) learn(manifests []json.RawMessage) error {
	for _, manifest := range manifests {
		var named metav1.PartialObjectMetadata
		if err := json.Unmarshal(manifest, &named); err != nil {
			return fmt.Errorf("decoding the plan: %w", err)
		}
		p.remember(named.Name, manifest)
	}
	return nil
}
