// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
)

// notFetched replaces the web when --fetch is not given.
type notFetched struct{}

func (notFetched) Get(context.Context, string, egress.Policy, int64) ([]byte, error) {
	return nil, unknown("not fetched (--fetch)")
}

func (notFetched) Package(context.Context, web.Hub, string, egress.Policy) ([]byte, error) {
	return nil, unknown("not fetched (--fetch)")
}
