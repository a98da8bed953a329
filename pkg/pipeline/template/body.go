// SPDX-License-Identifier: Apache-2.0

package template

import (
	"encoding/json"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
)

// Body decodes a payload for the expressions and placeholders that read it. If that would take too
// much memory, the fault is one of the pipeline that needs the payload. Other pipelines are not
// affected.
func Body(payload []byte) (map[string]any, error) {
	if memory.Of(payload) > memory.MaxAnswer {
		return nil, fault.Invalidf(
			reasonPayloadTooLarge,
			"the event's payload holds more values than are decoded for expressions and placeholders that read body: "+
				"push less at once, or do not refer to body",
		)
	}
	body := map[string]any{}
	if err := json.Unmarshal(payload, &body); err != nil {
		return nil, fault.Operatorf(reasonBadPayload, "decoding the payload: %w", err)
	}
	return body, nil
}
