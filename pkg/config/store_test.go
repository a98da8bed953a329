// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type recordingLogger struct{ infos, errors, fatals []string }

func (*recordingLogger) Debugf(string, ...any) {}

func (l *recordingLogger) Infof(format string, args ...any) {
	l.infos = append(l.infos, fmt.Sprintf(format, args...))
}

func (l *recordingLogger) Errorf(format string, args ...any) {
	l.errors = append(l.errors, fmt.Sprintf(format, args...))
}

func (l *recordingLogger) Fatalf(format string, args ...any) {
	l.fatals = append(l.fatals, fmt.Sprintf(format, args...))
}

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: Name}, Data: data}
}

func TestStoreKeepsThePreviousValueOfABadKey(t *testing.T) {
	logger := &recordingLogger{}
	var stored []*Config
	store := NewStore(logger, func(_ string, value any) { stored = append(stored, value.(*Config)) })

	store.OnConfigChanged(configMap(map[string]string{"application-name": "Acme CI", "secret-auto-create": "no way"}))
	if c := store.Load(); c.ApplicationName != "Acme CI" || !c.SecretAutoCreate {
		t.Errorf("first: got %+v, want the good key and the default of the bad one", c)
	}
	store.OnConfigChanged(configMap(map[string]string{"application-name": "Acme\nCI", "secret-auto-create": "false"}))
	if c := store.Load(); c.ApplicationName != "Acme CI" || c.SecretAutoCreate {
		t.Errorf("update: got %+v, want the previous name and the new boolean", c)
	}
	if len(logger.errors) != 2 || !strings.Contains(logger.errors[1],
		`ConfigMap plumbline/plumbline: these keys keep their previous values: key "application-name"`) {
		t.Errorf("logged %q, want one error for each bad ConfigMap", logger.errors)
	}
	if len(logger.fatals) != 0 {
		t.Errorf("a bad ConfigMap must not end the process: %q", logger.fatals)
	}
	if len(stored) != 2 || stored[1] != store.Load() {
		t.Errorf("onAfterStore saw %v, want both configurations", stored)
	}
}

func TestContextIsFrozen(t *testing.T) {
	store := NewStore(&recordingLogger{})
	if c := FromContext(store.ToContext(context.Background())); c.ApplicationName != Default().ApplicationName {
		t.Errorf("before the first ConfigMap: got %+v, want the defaults", c)
	}
	store.OnConfigChanged(configMap(map[string]string{"application-name": "one"}))
	ctx := store.ToContext(context.Background())
	store.OnConfigChanged(configMap(map[string]string{"application-name": "two"}))
	if got := FromContext(ctx).ApplicationName; got != "one" {
		t.Errorf("got %q, want the name as it was when the reconcile began", got)
	}
	if got := FromContext(context.Background()).ApplicationName; got != Default().ApplicationName {
		t.Errorf("a context without configuration: got %q, want the default", got)
	}
}
