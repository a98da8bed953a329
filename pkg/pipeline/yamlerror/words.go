// SPDX-License-Identifier: Apache-2.0

package yamlerror

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// maxShown is how many characters of a value a message shows.
const maxShown = 64

// misread says what is wrong with a value whose type decodes itself. The caller puts the path in
// front.
func misread(value any, t reflect.Type, err error) string {
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return fmt.Sprintf(": %s is no duration (write %s)", shown(value), duration(value))
	case reflect.TypeFor[resource.Quantity]():
		return fmt.Sprintf(": %s is no quantity (write %s)", shown(value), quantity(value))
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return fmt.Sprintf(": %s is no time (write for example 2006-01-02T15:04:05Z)", shown(value))
	case reflect.TypeFor[intstr.IntOrString]():
		return " must be a whole number or text, not " + given(value, t)
	}
	return fmt.Sprintf(": %s: %v", shown(value), err)
}

// inWords matches a number with a unit that is written out or short: days, hours, minutes or
// seconds.
var inWords = regexp.MustCompile(
	`^\s*([1-9][0-9]{0,4})\s*(d|h|m|s)(?:ays?|ours?|rs?|in|ins|inutes?|ec|ecs|econds?)?\.?\s*$`,
)

// duration returns the right way to write a duration, or an example.
func duration(value any) string {
	units := map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second}
	text, _ := value.(string)
	parts := inWords.FindStringSubmatch(strings.ToLower(text))
	if parts == nil {
		return "for example 1h30m"
	}
	count, _ := strconv.Atoi(parts[1])
	written := (time.Duration(count) * units[parts[2]]).String()
	if strings.HasSuffix(written, "m0s") {
		written = strings.TrimSuffix(written, "0s")
	}
	return written
}

// quantity returns the right way to write a quantity, or examples.
func quantity(value any) string {
	text, _ := value.(string)
	short := strings.TrimRight(strings.Join(strings.Fields(text), ""), "Bb")
	if _, err := resource.ParseQuantity(short); err == nil && short != "" {
		return short
	}
	return "for example 500m, 2 or 1Gi"
}

// shown returns a value as JSON. Long values are cut.
func shown(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "this"
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return text
}

// wanted names what a type accepts, in the words of authors.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text (put quotes around it)"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// given names what a value is, in the words of authors.
func given(value any, t reflect.Type) string {
	switch value := value.(type) {
	case string:
		return "text"
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	case bool:
		return "true or false"
	case json.Number:
		if kind := t.Kind(); kind >= reflect.Int && kind <= reflect.Float64 {
			return "the number " + value.String()
		}
		return "a number"
	}
	return "null"
}
