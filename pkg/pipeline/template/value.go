// SPDX-License-Identifier: Apache-2.0

package template

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// asText returns a value as part of a text: strings as they are, null as nothing, everything else
// as JSON. Whole numbers have no exponent.
func asText(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case float64:
		if value == math.Trunc(value) && !math.IsInf(value, 0) {
			return strconv.FormatFloat(value, 'f', -1, 64)
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// valid replaces invalid UTF-8 in all strings, because JSON, and so the API server, accepts only
// UTF-8.
func valid(value any) any {
	switch value := value.(type) {
	case string:
		return strings.ToValidUTF8(value, "\ufffd")
	case []any:
		for i, item := range value {
			value[i] = valid(item)
		}
	case map[string]any:
		for key, item := range value {
			value[key] = valid(item)
		}
	}
	return value
}
