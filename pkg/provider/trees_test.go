// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

// store is a repository that counts reads.
type store struct {
	t     *testing.T
	trees *Trees
	calls []string
}

func blobID(text string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text))
	return hex.EncodeToString(sum[:])
}

// read reads a directory of some id that holds files: pairs of a path and a text.
func (s *store) read(reader any, id string, files ...string) []git.File {
	s.t.Helper()
	texts := map[string]string{}
	got, err := s.trees.Files(s.t.Context(), TreeID{reader, id, ".tekton"}, func() ([]Definition, error) {
		s.calls = append(s.calls, "list")
		var list []Definition
		for i := 0; i < len(files); i += 2 {
			list = append(list, Definition{files[i], blobID(files[i+1])})
			texts[files[i]] = files[i+1]
		}
		return list, nil
	}, func(_ context.Context, f Definition) ([]byte, error) {
		s.calls = append(s.calls, f.Path)
		return []byte(texts[f.Path]), nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

func (s *store) took(why string, want ...string) {
	s.t.Helper()
	if d := cmp.Diff(want, s.calls); d != "" {
		s.t.Errorf("%s: %s", why, d)
	}
	s.calls = nil
}

func TestTreesReadUnchangedDirectoryOnce(t *testing.T) {
	s := &store{t: t, trees: &Trees{}}
	first := s.read("a", "t1", "a.yaml", "one")
	s.took("at first", "list", "a.yaml")
	if d := cmp.Diff(first, s.read("a", "t1")); d != "" || len(first) != 1 || string(first[0].Data) != "one" {
		t.Error(first, d)
	}
	s.took("again")
	_ = append(first[0].Data, 'x')
	s.read("a", "t2", "a.yaml", "one", "b.yaml", "two")
	s.took("with another file", "list", "b.yaml")
	s.read("b", "t1", "a.yaml", "one")
	s.took("for somebody else", "list", "a.yaml")
	if got := s.read("a", "none"); got == nil || len(got) != 0 {
		t.Errorf("%v", got)
	}
	s.read("a", "none")
	s.took("an empty one", "list", "list")
	moved := s.read("a", "t3", "c.yaml", "one")
	s.took("under another name", "list")
	if moved[0].Path != "c.yaml" || string(moved[0].Data) != "one" {
		t.Error(moved)
	}
}

func TestTreesLimitCachedBytes(t *testing.T) {
	s := &store{t: t, trees: &Trees{}}
	large := strings.Repeat("x", maxTreeObject)
	s.read("a", "large", "a.yaml", large)
	s.read("a", "large", "a.yaml", large)
	s.took("one that is too large to keep", "list", "a.yaml", "a.yaml")
	for i := range 2 * maxTreeBytes / (maxTreeObject / 2) {
		s.read("a", fmt.Sprint("t", i), "a.yaml", fmt.Sprint(i)+large[:maxTreeObject/2])
	}
	if s.trees.bytes > maxTreeBytes || s.trees.bytes < maxTreeBytes/2 {
		t.Errorf("%d bytes are kept, at most %d may be", s.trees.bytes, maxTreeBytes)
	}
	s.calls = nil
	s.read("a", "t0", "a.yaml", "0"+large[:maxTreeObject/2])
	s.took("what was used longest ago has gone", "list", "a.yaml")
}

// Content that does not match Git's id is not cached, and neither is a failed read.
func TestTreesDoNotCacheWrongContent(t *testing.T) {
	trees := &Trees{}
	for i, text := range []string{"a page", "one"} {
		got, err := trees.Files(t.Context(), TreeID{"a", "t", ".tekton"}, func() ([]Definition, error) {
			return []Definition{{"a.yaml", blobID("one")}}, nil
		}, func(context.Context, Definition) ([]byte, error) { return []byte(text), nil })
		if err != nil || string(got[0].Data) != text {
			t.Errorf("%d: %q, %v", i, got, err)
		}
	}
	down := errors.New("down")
	if _, err := trees.Files(t.Context(), TreeID{"a", "u", ".tekton"}, func() ([]Definition, error) { return nil, down },
		nil); !errors.Is(err, down) {
		t.Error(err)
	}
}
