// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
)

// verify checks a delivery; one that does not fit may have been signed after the secret was copied,
// so a newer copy is asked for, and tried if it is waited for. The error is Transient when nobody
// could be asked: that says nothing of the delivery.
func (d *delivery) verify(secret secrets.Secret, wait bool) error {
	mismatch := d.fits(secret)
	if mismatch == nil {
		return nil
	}
	newer, err := secret.Newer(wait)
	if err != nil {
		return err
	}
	if newer.Current == nil {
		return mismatch
	}
	return d.fits(newer)
}

// fits checks a delivery. While there is a previous secret both are always tried: the time it takes
// does not tell which of them fits.
func (d *delivery) fits(secret secrets.Secret) error {
	current := d.provider.Webhook.Verify(d.header, d.body, secret.Current)
	if len(secret.Previous) == 0 {
		return current
	}
	previous := d.provider.Webhook.Verify(d.header, d.body, secret.Previous)
	if current != nil && previous == nil {
		d.previousKey = secret.PreviousKey()
		return nil
	}
	return current
}
