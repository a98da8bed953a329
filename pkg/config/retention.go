// SPDX-License-Identifier: Apache-2.0

package config

// MaxKeep is the largest number of ended runs that a setting may name. An author who asks for more
// asks for all.
const MaxRetained = 1_000_000

// KeepAll is what is noted of an author's text that is no number of runs: all of them are kept.
const RetainAll = -1

// Keep says how many ended runs of each pipeline are kept. 0 is unset in both.
type Retention struct {
	// Default is for pipelines whose authors say nothing. It is not capped, as in PaC.
	Default int
	// Limit is the most that an author may ask for.
	Limit int
}

// Of returns how many ended runs of a pipeline are kept, and false if all of them are. Asked is
// what the author has written: nil for nothing, KeepAll for what is no number of runs. An author
// who writes 0 keeps none.
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
