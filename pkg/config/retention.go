// SPDX-License-Identifier: Apache-2.0

package config

// MaxRetained is the largest number of finished runs that a setting may name. An author who asks
// for more keeps all.
const MaxRetained = 1_000_000

// RetainAll stands for an author's text that is not a number: all runs are kept.
const RetainAll = -1

// Retention says how many finished runs of each pipeline are kept. In both fields, 0 means unset.
type Retention struct {
	// Default is for pipelines without the annotation. It is not capped, as in PaC.
	Default int
	// Limit is the most that an author may ask for.
	Limit int
}

// For returns how many finished runs of a pipeline are kept, and false if all are. asked is the
// author's value: nil without the annotation, RetainAll if it is not a number. 0 keeps none.
func (k Retention) For(asked *int64) (most int, limited bool) {
	switch {
	case asked == nil:
		return k.Default, k.Default > 0
	case *asked < 0:
		return 0, false
	case k.Limit > 0 && *asked > int64(k.Limit):
		return k.Limit, true
	case *asked > MaxRetained:
		return 0, false
	}
	return int(*asked), true
}

func (p *parser) keep(previous Retention) Retention {
	within := limits{minimum: 0, maximum: MaxRetained}
	return Retention{
		Default: p.integer(keyKeepDefault, within, 0, previous.Default),
		Limit:   p.integer(keyKeepLimit, within, 0, previous.Limit),
	}
}
