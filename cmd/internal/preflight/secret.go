// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

// The keys of the GitHub App's Secret.
const (
	KeyAppID         = "github-application-id"
	KeyPrivateKey    = "github-private-key"
	KeyWebhookSecret = webhooksecret.AppKey
)

func (c *Checker) secret(ctx context.Context) []Finding {
	object := fmt.Sprintf("Secret %s/%s", c.Namespace, c.AppSecret)
	secret, err := c.kube.CoreV1().Secrets(c.Namespace).Get(ctx, c.AppSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return []Finding{
			{
				Object:  object,
				Problem: "does not exist: no delivery of the GitHub App can be verified or answered",
				Remedy: fmt.Sprintf(
					"kubectl -n %s create secret generic %s --from-literal=%s=<App ID> --from-file=%s=<key>.pem --from-literal=%s=<webhook secret>"+
						" (an installation that serves GitLab only can do without it)",
					c.Namespace,
					c.AppSecret,
					KeyAppID,
					KeyPrivateKey,
					KeyWebhookSecret,
				),
			},
		}
	}
	if err != nil {
		return []Finding{c.unread(ctx, object, err, "get it", roles)}
	}
	var all []Finding
	for _, key := range []struct {
		name, is string
		fits     func([]byte) bool
	}{
		{KeyAppID, "the App's ID, a number", isNumber},
		{KeyPrivateKey, "the App's private key, an RSA key in PEM form as GitHub made it", isKey},
		{KeyWebhookSecret, "the webhook secret of the App's settings", func(v []byte) bool { return len(v) > 0 }},
	} {
		value, there := secret.Data[key.name]
		problem := ""
		switch value = bytes.TrimSpace(value); {
		case !there:
			problem = "has no key " + key.name
		case len(value) == 0:
			problem = fmt.Sprintf("has an empty key %s", key.name)
		case !key.fits(value):
			problem = fmt.Sprintf("has a key %s that is not %s", key.name, key.is)
		}
		if problem != "" {
			all = append(all, Finding{
				Object: object, Problem: problem,
				Remedy: fmt.Sprintf("set %s to %s; it is read again for every event", key.name, key.is),
			})
		}
	}
	return all
}

func isNumber(value []byte) bool {
	id, err := strconv.ParseInt(string(value), 10, 64)
	return err == nil && id > 0
}

// isKey accepts the two forms that GitHub's keys come in: PKCS #1 as downloaded, PKCS #8 when
// converted.
func isKey(value []byte) bool {
	block, _ := pem.Decode(value)
	if block == nil {
		return false
	}
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return true
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	_, isRSA := key.(*rsa.PrivateKey)
	return err == nil && isRSA
}
