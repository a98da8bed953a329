// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// GitHub's page sizes.
const (
	defaultPerPage = 30
	maxPerPage     = 100
)

// page cuts the caller's page out of all and returns it with the Link header
// that leads to the others; the header is empty when there is only one page.
// Wrong numbers fall back to the defaults, as on GitHub.
func page[T any](g *GitHub, r *http.Request, all []T) ([]T, string) {
	q := r.URL.Query()
	per := positive(q.Get("per_page"), defaultPerPage)
	if per > maxPerPage {
		per = maxPerPage
	}
	n := positive(q.Get("page"), 1)
	last := (len(all) + per - 1) / per
	if last == 0 {
		last = 1
	}
	from := min((n-1)*per, len(all))
	to := min(from+per, len(all))
	return all[from:to], links(g, r, n, last)
}

func positive(s string, d int) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 1<<20 {
		return d
	}
	return n
}

func links(g *GitHub, r *http.Request, n, last int) string {
	if last <= 1 {
		return ""
	}
	var out []string
	add := func(page int, rel string) {
		q := r.URL.Query()
		q.Set("page", strconv.Itoa(page))
		out = append(out, fmt.Sprintf("<%s/api/v3%s?%s>; rel=%q", g.core.BaseURL, r.URL.EscapedPath(), q.Encode(), rel))
	}
	if n > 1 {
		add(n-1, "prev")
	}
	if n < last {
		add(n+1, "next")
		add(last, "last")
	}
	if n > 1 {
		add(1, "first")
	}
	return strings.Join(out, ", ")
}

// paged answers 200 with the page of list, wrapped by wrap.
func paged[T any](c *call, list []T, wrap func([]T) any) answer {
	part, link := page(c.g, c.r, list)
	if part == nil {
		part = []T{}
	}
	a := ok(wrap(part))
	if link != "" {
		a = a.With("Link", link)
	}
	return a
}

// shown are entries as the API shows them.
func shown[T any](g *GitHub, list []T, show func(T, *GitHub) object) []object {
	out := []object{}
	for _, v := range list {
		out = append(out, show(v, g))
	}
	return out
}

// listed answers 200 with the page of list.
func listed[T any](c *call, list []T, show func(T, *GitHub) object) answer {
	return paged(c, list, func(part []T) any { return shown(c.g, part, show) })
}
