// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"regexp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The titles of failed checks whose cause is known.
const (
	titleFailed   = "Failed"
	titleFailedBy = "Failed: %s"
	titleCluster  = "Cluster problem: %s. Your change is not the cause."
	// titleLimit is for rules and limits of the cluster: the change may have asked for too much.
	titleLimit = "Cluster problem: %s."
)

// Title returns the title of a failed check.
func Title(verdict v1alpha1.Verdict, cause string) string {
	switch {
	case cause == "":
		return titleFailed
	case verdict == v1alpha1.VerdictInfrastructure && limitCause.MatchString(cause):
		return fmt.Sprintf(titleLimit, cause)
	case verdict == v1alpha1.VerdictInfrastructure:
		return fmt.Sprintf(titleCluster, cause)
	}
	return fmt.Sprintf(titleFailedBy, cause)
}

// limitCause matches the causes that are a rule or a limit of the cluster: causeRefused, causeQuota
// and causeUnschedulable.
var limitCause = regexp.MustCompile(`^no quota was left for |^no node had room for | refused `)

// What failed, in a few words: the causes in these titles. Titles that blame the cluster have no
// task where it does not matter which task met the problem.
const (
	causeExit          = "step %s of task %s exited with code %d"
	causeStepTimeout   = "step %s of task %s exceeded its timeout"
	causeMemory        = "%s %s of task %s ran out of memory"
	causeSidecar       = "sidecar %s of task %s exited with code %d"
	causeTimeout       = "task %s exceeded the timeout"
	causeCancelled     = "task %s was cancelled"
	causeRunTimeout    = "the pipeline exceeded its timeout"
	causeStorage       = "the pod of task %s used more storage than its limit"
	causeConfig        = "the pod of task %s refers to something that does not exist or is invalid"
	causeNoImage       = "an image of task %s does not exist or may not be pulled"
	causeImage         = "an image of task %s could not be pulled"
	causeNoTask        = "the definition of task %s was not found"
	causeNoDefinition  = "the definition of the pipeline or of a task was not found"
	causeInvalidTask   = "task %s is invalid"
	causeInvalidRun    = "the pipeline is invalid (%s)"
	causeResult        = "a result is missing"
	causeLargeResult   = "a result of task %s is too large"
	causeRefused       = "%s refused %s"
	causeNotCreated    = "%s could not be created"
	causeStart         = "%s did not start"
	causeTerminating   = "namespace %s is being deleted"
	causeEvicted       = "pod evicted"
	causePreempted     = "pod preempted"
	causeNodeLost      = "node lost"
	causeShutdown      = "node shut down"
	causeNodeRefused   = "a node rejected the pod"
	causeInit          = "an init container of task %s failed"
	causeStopSidecar   = "the sidecars of task %s could not be stopped"
	causeRegistry      = "the image registry is unavailable"
	causeWebhook       = "the %s %s failed"
	causeQuota         = "no quota was left for %s"
	causeUnschedulable = "no node had room for the pod of task %s"
	causeFetch         = "the source of a definition is unavailable"
	causeVolume        = "a volume could not be created"
)

// The components that refuse a PipelineRun.
const (
	refuserTekton      = "Tekton's webhook"
	refuserWebhook     = "the admission webhook"
	refuserPodSecurity = "Pod Security admission at level"
	refuserLimitRange  = "a LimitRange of the namespace"
	refuserValidation  = "the validation of the Kubernetes API server"
	refuserServer      = "the Kubernetes API server"
	refuserSize        = "the cluster's limit on the size of an object"
	refuserLimit       = "Plumbline's Pod Security limit"
)

// What an author can do about a refusal. The value is the file, as a link.
const (
	fixIt  = "Fix %s and push again."
	meetIt = "This is a rule of your cluster: ask its administrators. Or change %s so that it meets the rule, and push again."
)
