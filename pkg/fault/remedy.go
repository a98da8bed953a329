// SPDX-License-Identifier: Apache-2.0

package fault

// remedy returns what to do about an answer of the API server. It is empty if the answer says so
// itself, or if there is nothing to do.
func (e *Error) remedy() string {
	switch e.Reason {
	case ReasonWebhookUnavailable:
		return remedyOfCertificate(uncalled(e.Message))
	case ReasonForbidden:
		if isRBAC(e.Message) {
			return "grant this right by applying Plumbline's config/ again, or by binding a Role that has it in that namespace to that user"
		}
	case ReasonTooLarge:
		if e.Class == Invalid {
			return "the cluster stores nothing that large; make it smaller, for example by referring to Tasks instead of writing them out"
		}
	case ReasonUnreachable, ReasonTimeout:
		if isOwnLimit(e.Message) {
			return "Plumbline's own limit of requests to the API server is exhausted; raise -kube-api-qps and -kube-api-burst if this lasts"
		}
	}
	return remedyOf(e.Reason)
}

// remedyOf returns the remedy for a reason, if it is always the same.
func remedyOf(reason string) string {
	return map[string]string{
		ReasonNamespaceMissing: "create the namespace again",
		ReasonNotServed:        "install the CustomResourceDefinition and version that is asked for: Tekton Pipelines has those of tekton.dev, Plumbline's config/ its own",
		ReasonStoreFull:        "etcd has no space left; compact and defragment it or raise its quota, then disarm its alarm NOSPACE",
		ReasonUnauthorized:     "the API server does not accept the token of Plumbline's ServiceAccount, which is renewed by itself; if this lasts, look at the API server's keys for such tokens",
		ReasonNotSupported:     "this API server and this version of Plumbline do not fit together; compare their versions",
	}[reason]
}

func remedyOfCertificate(kind string) string {
	switch kind {
	case AdmissionExpired:
		return "whoever runs this webhook has to renew its certificate; Tekton's does so when it is restarted"
	case AdmissionUnknownAuthority:
		return "the caBundle in this webhook's configuration does not belong to its certificate; whoever runs it has to renew both, Tekton's does so when it is restarted"
	}
	return ""
}
