// SPDX-License-Identifier: Apache-2.0

package yamlerror

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDurationsAndQuantitiesSuggestTheRightText(t *testing.T) {
	var durations struct{ At metav1.Duration }
	var quantities struct{ At resource.Quantity }
	for _, c := range []struct {
		into any
		json string
		want string
	}{
		{durations, `"1 hour"`, `At: "1 hour" is no duration (write 1h0m)`},
		{durations, `"2hrs"`, `At: "2hrs" is no duration (write 2h0m)`},
		{durations, `" 45 Seconds "`, `At: " 45 Seconds " is no duration (write 45s)`},
		{durations, `"90 min."`, `At: "90 min." is no duration (write 1h30m)`},
		{durations, `"7d"`, `At: "7d" is no duration (write 168h0m)`},
		{durations, `"99999 days"`, `At: "99999 days" is no duration (write 2399976h0m)`},
		{durations, `"200000 days"`, `At: "200000 days" is no duration (write for example 1h30m)`},
		{durations, `"1 month"`, `At: "1 month" is no duration (write for example 1h30m)`},
		{durations, `"5 milliseconds"`, `At: "5 milliseconds" is no duration (write for example 1h30m)`},
		{durations, `"1h 30m"`, `At: "1h 30m" is no duration (write for example 1h30m)`},
		{durations, `""`, `At: "" is no duration (write for example 1h30m)`},
		{quantities, `"1 Gi"`, `At: "1 Gi" is no quantity (write 1Gi)`},
		{quantities, `"512MiB"`, `At: "512MiB" is no quantity (write 512Mi)`},
		{quantities, `"1 GB"`, `At: "1 GB" is no quantity (write 1G)`},
		{quantities, `"B"`, `At: "B" is no quantity (write for example 500m, 2 or 1Gi)`},
		{quantities, `true`, `At: true is no quantity (write for example 500m, 2 or 1Gi)`},
	} {
		found := Refused([]byte(`{"At": `+c.json+`}`), reflect.TypeOf(c.into))
		if found == nil || found.Why != c.want || found.Path.String() != "At" {
			t.Errorf("%s: %+v, want %s", c.json, found, c.want)
		}
	}
	if found := Refused([]byte(`{"At": "1h", "other": {}}`), reflect.TypeOf(durations)); found != nil {
		t.Errorf("%+v, want nothing", found)
	}
}
