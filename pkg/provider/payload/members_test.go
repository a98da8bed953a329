// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func members(t *testing.T, object string) []string {
	t.Helper()
	var all []string
	err := eachMember([]byte(object), func(name string, value []byte) error {
		all = append(all, name, string(value))
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	return all
}

func TestEach(t *testing.T) {
	for sentence, c := range map[string]struct {
		object string
		want   []string
	}{
		"an empty object has none": {" { } ", nil},
		"scalars end where they end": {
			`{"a":1,"b":-1.5e3 ,"c":true,"d":null}`, []string{"a", "1", "b", "-1.5e3", "c", "true", "d", "null"},
		},
		"brackets and quotes in strings are text": {
			`{"a":"}]\"{","b":[{"x":"]}"},"\\"]}`, []string{"a", `"}]\"{"`, "b", `[{"x":"]}"},"\\"]`},
		},
		"names are decoded and may be written oddly": {
			"{\n\t\"\\u0061\\\"\" :\r\n {\"a\":[]} , \"ü\":0}", []string{`a"`, `{"a":[]}`, "ü", "0"},
		},
		"a name that occurs twice is given twice": {`{"a":1,"a":2}`, []string{"a", "1", "a", "2"}},
		"what ends with a backslash ends":         {`{"a":"\\","b":"\\\\\""}`, []string{"a", `"\\"`, "b", `"\\\\\""`}},
	} {
		if diff := cmp.Diff(c.want, members(t, c.object)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestEachStops(t *testing.T) {
	stop := errors.New("enough")
	calls := 0
	err := eachMember([]byte(`{"a":1,"b":2}`), func(string, []byte) error {
		calls++
		return stop
	})
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%d calls, %v; want one and its error", calls, err)
	}
	for _, other := range []string{"", " ", "[]", `"{}"`, "1"} {
		if err := eachMember([]byte(other), nil); !errors.Is(err, errNotObject) {
			t.Errorf("%q: %v, want that it is no object", other, err)
		}
	}
}

func TestWithout(t *testing.T) {
	got, err := withoutMember([]byte(`{"Commits":[1],"a\u0022":{"commits":1}, "commits":[{}] ,"b":2}`), "commits")
	if want := `{"a\"":{"commits":1},"b":2}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// A large body costs only what is read of it.
func TestLargeMemberIsNotCopied(t *testing.T) {
	body := []byte(`{"a":1,"commits":["` + strings.Repeat("x", 4<<20) + `"],"b":2}`)
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if left, err := withoutMember(body, "commits"); err != nil || len(left) > 20 {
				b.Fatal(len(left), err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 4<<10 {
		t.Errorf("%d bytes allocated to read a few bytes of %d", allocated, len(body))
	}
}

// FuzzEach compares with encoding/json: the same names and values, and no read out of bounds.
func FuzzEach(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"]}\\\""}],"c":null}`, `{}`, `{"\u00e4":"\ud800"}`, "[1]", `{"a"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := map[string]json.RawMessage{}
		err := eachMember(data, func(name string, value []byte) error {
			got[strings.ToValidUTF8(name, "\ufffd")] = bytes.Clone(value)
			return nil
		})
		if !json.Valid(data) {
			return // it must only not panic
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(data, &want) != nil || want == nil {
			if !errors.Is(err, errNotObject) {
				t.Fatalf("%q is no object: %v", data, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) && bytes.Equal(bytes.ToValidUTF8(data, nil), data) {
			t.Fatalf("%d members, want %d", len(got), len(want))
		}
		for name, value := range want {
			if bytes.Equal(bytes.ToValidUTF8(data, nil), data) && !bytes.Equal(got[name], value) {
				t.Fatalf("%q is %s, want %s", name, got[name], value)
			}
		}
	})
}
