// SPDX-License-Identifier: Apache-2.0

package match

// List reads the value of an annotation that holds one word or a list. The error is a
// fault.Invalid that names the annotation.
func List(annotation, value string) ([]string, error) {
	return list(annotation, value)
}
