// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"encoding/json"
	"slices"
	"strings"
)

// maxNesting is how many levels are searched for texts. Each level decodes the levels below it
// again: without a limit, a small answer with some thousand levels would take minutes.
const maxNesting = 4

// said is the message in a Git service's JSON; empty for anything else, e.g. an HTML page.
type said struct {
	message       string
	documentation string
	// limited: a GraphQL answer with an error of type RATE_LIMITED.
	limited bool
}

func parse(body []byte) said {
	var raw struct {
		Message          json.RawMessage `json:"message"`
		Error            json.RawMessage `json:"error"`
		ErrorDescription string          `json:"error_description"`
		Errors           json.RawMessage `json:"errors"`
		DocumentationURL string          `json:"documentation_url"`
	}
	if json.Unmarshal(body, &raw) != nil {
		return said{}
	}
	parts := slices.Concat(flatten(raw.Message, maxNesting), flatten(raw.Error, maxNesting),
		[]string{raw.ErrorDescription})
	details, limited := details(raw.Errors)
	parts = append(parts, details...)
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return said{
		message:       strings.Join(slices.Compact(parts), ": "),
		documentation: raw.DocumentationURL,
		limited:       limited,
	}
}

// flatten returns the strings of a string, a list or an object (GitLab: {"base": ["is too long"]}),
// so many levels deep.
func flatten(raw json.RawMessage, levels int) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	if levels == 0 {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		var all []string
		for _, item := range list {
			all = append(all, flatten(item, levels-1)...)
		}
		return all
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	var all []string
	for key, value := range object {
		all = append(all, key+" "+strings.Join(flatten(value, levels-1), ", "))
	}
	slices.Sort(all)
	return all
}

// details returns the texts of GitHub's list of errors, and whether it has GraphQL's RATE_LIMITED.
func details(raw json.RawMessage) (texts []string, limited bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return flatten(raw, maxNesting), false
	}
	for _, item := range list {
		var e struct {
			Resource string `json:"resource"`
			Field    string `json:"field"`
			Code     string `json:"code"`
			Message  string `json:"message"`
			Type     string `json:"type"`
		}
		if json.Unmarshal(item, &e) != nil {
			texts = append(texts, flatten(item, maxNesting)...)
			continue
		}
		limited = limited || e.Type == "RATE_LIMITED"
		words := []string{e.Resource, e.Field, e.Code, e.Message}
		words = slices.DeleteFunc(words, func(s string) bool { return s == "" })
		texts = append(texts, strings.Join(words, " "))
	}
	return texts, limited
}
