// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/scheme"
	client "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
)

// metadataOnly asks the API server for nothing but the metadata of what it answers with, and for
// refusals as they are: without the latter they are missing in its audit log.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// Payloads is the generated client but for Create, which lets the API server not send the whole
// chunk back: that is nearly half of what a create costs it. It returns what it was given.
func Payloads(c client.PlumblineV1alpha1Interface, namespace string) client.EventPayloadInterface {
	return frugal{c.EventPayloads(namespace), c, namespace}
}

type frugal struct {
	client.EventPayloadInterface
	client    client.PlumblineV1alpha1Interface
	namespace string
}

// Create implements client.EventPayloadInterface.
func (f frugal) Create(
	ctx context.Context,
	payload *v1alpha1.EventPayload,
	o metav1.CreateOptions,
) (*v1alpha1.EventPayload, error) {
	err := f.client.RESTClient().
		Post().
		Namespace(f.namespace).
		Resource("eventpayloads").
		VersionedParams(&o, scheme.ParameterCodec).
		SetHeader("Accept", metadataOnly).
		Body(payload).
		Do(ctx).
		Error()
	return payload, err
}
