// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/config"
)

// entries splits serve-namespaces.
func entries(value string) []string {
	return strings.FieldsFunc(value,
		func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' || r == '\r' })
}

// edit returns serve-namespaces after the move.
func (n *Namespaces) edit(value string) (string, error) {
	what := fmt.Sprintf("%s of ConfigMap %s/%s", keyNamespaces, n.Namespace, n.ConfigMap)
	served := func(value string) (config.Namespaces, error) {
		settings, err := config.New(map[string]string{keyNamespaces: value})
		if err != nil {
			return config.Namespaces{}, fmt.Errorf("%s is not valid: %w", what, err)
		}
		return settings.Namespaces, nil
	}
	before, err := served(value)
	if err != nil {
		return "", err
	}
	list := entries(value)
	if len(list) == 0 {
		return "", fmt.Errorf("%s is empty, so Plumbline serves every namespace: set it to %s and the namespaces that "+
			"have moved, separated by commas", what, n.Namespace)
	}
	if !slices.Contains(list, n.Namespace) { // an empty list means every namespace
		list = append([]string{n.Namespace}, list...)
	}
	for _, name := range n.Names {
		switch {
		case n.Back:
			list = slices.DeleteFunc(list, func(entry string) bool { return entry == name })
		case !before.Serve(name):
			list = append(list, name)
		}
	}
	result := strings.Join(list, ", ")
	after, err := served(result)
	if err != nil {
		return "", err
	}
	for _, name := range n.Names {
		if after.Serve(name) == n.Back {
			return "", fmt.Errorf("%s has an entry with * or ! that decides about namespace %s: %q. Name each namespace instead",
				what, name, value)
		}
	}
	return result, nil
}

// keys returns what a move changes in ConfigMap plumbline, nothing if the namespaces have moved.
func (n *Namespaces) keys(cm *corev1.ConfigMap) (map[string]*string, error) {
	value, err := n.edit(cm.Data[keyNamespaces])
	if err != nil || slices.Equal(entries(value), entries(cm.Data[keyNamespaces])) {
		return nil, err
	}
	return map[string]*string{keyNamespaces: &value}, nil
}

// stillMoved returns an error if another client has undone the move.
func (n *Namespaces) stillMoved(ctx context.Context) error {
	cm, err := n.settings(ctx)
	if err != nil {
		return err
	}
	keys, err := n.keys(cm)
	if err == nil && len(keys) > 0 {
		err = fmt.Errorf("%s of ConfigMap %s/%s was changed meanwhile, and the move is undone: find out who writes it, "+
			"for example another administrator or GitOps, then run the command again", keyNamespaces, n.Namespace, n.ConfigMap)
	}
	return err
}

// move changes serve-namespaces.
func (n *Namespaces) move(ctx context.Context) error {
	changed, err := n.change(ctx, n.keys)
	if err != nil {
		return err
	}
	if changed {
		n.say("ConfigMap %s/%s: %s was changed", n.Namespace, n.ConfigMap, keyNamespaces)
	}
	return nil
}
