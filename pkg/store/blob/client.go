// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/scheme"
	client "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
)

// metadataOnly requests only the metadata of the answer, and refusals as they are: without the
// latter, refusals are missing in the API server's audit log.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// Payloads returns the generated client with another Create. That one has the API server not send
// the chunk back, which is nearly half of the cost of a create, and returns its argument.
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
	ctx context.Context, payload *v1alpha1.EventPayload, o metav1.CreateOptions,
) (*v1alpha1.EventPayload, error) {
	err := f.client.RESTClient().Post().Namespace(f.namespace).Resource("eventpayloads").
		VersionedParams(&o, scheme.ParameterCodec).SetHeader("Accept", metadataOnly).Body(payload).Do(ctx).Error()
	return payload, err
}
