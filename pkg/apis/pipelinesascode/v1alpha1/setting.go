// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Treatment says what Plumbline does with a setting of Pipelines-as-Code (PaC).
type Treatment string

const (
	// Served is a setting that means what it means in PaC.
	Served Treatment = "served"
	// Differs is a setting whose purpose is served in another way.
	Differs Treatment = "differs"
	// Unserved is a setting that has no effect.
	Unserved Treatment = "not served"
)

// Setting is a field of PaC's Repository, or a key of its ConfigMap.
//
// +k8s:deepcopy-gen=false
type Setting struct {
	// Name is the key or the field's path, which is below spec but for pipelinerun_status.
	Name      string
	Treatment Treatment
	// Instead says what happens instead, as a clause for people. It is empty if the setting is
	// served.
	Instead string
	// Idle are the values of a key that change nothing in PaC either, in addition to none.
	Idle []string
}

// UnservedFields returns the fields of PaC's Repository that do not mean the same in Plumbline. All
// other fields are served. A field stands for those below it.
func UnservedFields() []Setting {
	return []Setting{
		{
			Name:      "git_provider.type",
			Treatment: Differs,
			Instead:   "github and gitlab are served; events of gitea, forgejo, bitbucket-cloud and bitbucket-datacenter start nothing",
		},
		{
			Name:      fieldTokenRotation,
			Treatment: Unserved,
			Instead:   "renew the token yourself, with GitLab's API or its settings",
		},
		{Name: fieldForgejo, Treatment: Unserved, Instead: "Gitea and Forgejo are not served"},
		{Name: fieldAI, Treatment: Unserved, Instead: "no language model reads runs"},
		{Name: "pipelinerun_status", Treatment: Unserved, Instead: "status.recent has the last events"},
	}
}

const (
	fieldTokenRotation = "settings.gitlab.token_auto_rotation"
	fieldForgejo       = "settings.forgejo"
	fieldAI            = "settings.ai"
)
