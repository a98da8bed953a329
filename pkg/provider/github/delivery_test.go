// SPDX-License-Identifier: Apache-2.0

package github

import "github.com/plumbline-ci/plumbline/pkg/provider/github/delivery"

type webhook = delivery.Webhook

const (
	headerEvent     = "X-GitHub-Event"
	headerSignature = "X-Hub-Signature-256"
	headerTarget    = "X-GitHub-Hook-Installation-Target-Type"
)
