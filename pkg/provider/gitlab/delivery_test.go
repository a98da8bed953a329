// SPDX-License-Identifier: Apache-2.0

package gitlab

import "github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"

type webhook = delivery.Webhook

const (
	eventPush         = "Push Hook"
	eventTag          = "Tag Push Hook"
	eventMergeRequest = "Merge Request Hook"
	eventNote         = "Note Hook"
)
