// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The rules are the values that the Pod Security Standards forbid. What they demand and an author
// leaves out is not refused: Tekton and defaults of the cluster may add it.

// unseen refuses what Tekton fetches itself, after it was judged. Annotations refer to the same,
// and Plumbline inlines that.
func unseen(parent, key string, value any) string {
	resolver, _ := value.(string)
	isReference := parent == "taskRef" || parent == "pipelineRef" || parent == "ref"
	if key != "resolver" || !isReference || resolver == "" || resolver == "cluster" {
		return ""
	}
	return fmt.Sprintf(
		"%q, so that what will run is not known here (name it in an annotation instead: task, task-N or pipeline)",
		resolver,
	)
}

// forbidden are the fields with one kind of value that baseline refuses.
func forbidden(_, key string, value any) string {
	switch key {
	case "hostNetwork", "hostPID", "hostIPC", "privileged", "hostProcess":
		if value == true {
			return "true"
		}
	case "hostPath":
		if _, is := value.(map[string]any); is {
			return "set"
		}
	case "hostPort":
		if port, _ := value.(float64); port != 0 {
			return fmt.Sprint(port)
		}
	}
	return ""
}

// hosts refuses the host of a probe or lifecycle hook. The kubelet would call it from the node's
// network.
func hosts(parent, key string, value any) string {
	host, _ := value.(string)
	if key != "host" || parent != "httpGet" && parent != "tcpSocket" || host == "" {
		return ""
	}
	return fmt.Sprintf("%q", host)
}

// profiles allows by name: Tekton replaces variables in a pod template's profiles, and what
// $(params.x) becomes is not known.
func profiles(parent, key string, value any) string {
	text, _ := value.(string)
	confined := text == "" || text == "RuntimeDefault" || text == "Localhost"
	switch {
	case key == "type" && (parent == "seccompProfile" || parent == "appArmorProfile") && !confined,
		key == "procMount" && parent == "securityContext" && text != "" && text != "Default":
		return fmt.Sprintf("%q", text)
	}
	return ""
}

func seLinux(parent, key string, value any) string {
	text, _ := value.(string)
	if parent != "seLinuxOptions" || text == "" || key == "level" {
		return ""
	}
	allowed := []string{"container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
	if key == "type" && slices.Contains(allowed, text) {
		return ""
	}
	return fmt.Sprintf("%q", text)
}

// sysctls are safe if they are of the container's own namespaces.
func sysctls(_, key string, value any) string {
	list, _ := value.([]any)
	if key != "sysctls" {
		return ""
	}
	safe := []string{
		"kernel.shm_rmid_forced",
		"net.ipv4.ip_local_port_range",
		"net.ipv4.ip_unprivileged_port_start",
		"net.ipv4.tcp_syncookies",
		"net.ipv4.ping_group_range",
		"net.ipv4.ip_local_reserved_ports",
		"net.ipv4.tcp_keepalive_time",
		"net.ipv4.tcp_fin_timeout",
		"net.ipv4.tcp_keepalive_intvl",
		"net.ipv4.tcp_keepalive_probes",
		"net.ipv4.tcp_rmem",
		"net.ipv4.tcp_wmem",
	}
	for _, item := range list {
		setting, _ := item.(map[string]any)
		if name, _ := setting["name"].(string); !slices.Contains(safe, name) {
			return fmt.Sprintf("%q", name)
		}
	}
	return ""
}

func capabilities(level string) rule {
	allowed := []string{"NET_BIND_SERVICE"}
	if level == Baseline {
		allowed = append(
			allowed,
			"AUDIT_WRITE",
			"CHOWN",
			"DAC_OVERRIDE",
			"FOWNER",
			"FSETID",
			"KILL",
			"MKNOD",
			"SETFCAP",
			"SETGID",
			"SETPCAP",
			"SETUID",
			"SYS_CHROOT",
		)
	}
	return func(parent, key string, value any) string {
		list, _ := value.([]any)
		if parent != "capabilities" || key != "add" {
			return ""
		}
		for _, item := range list {
			if name := fmt.Sprint(item); !slices.Contains(allowed, name) {
				return fmt.Sprintf("%q", name)
			}
		}
		return ""
	}
}

// appArmor is the annotation that came before appArmorProfile. Tekton copies annotations to pods.
func appArmor(parent, key string, value any) string {
	text, _ := value.(string)
	known := text == "" || text == "runtime/default" || strings.HasPrefix(text, "localhost/")
	if parent != "annotations" || !strings.HasPrefix(key, "container.apparmor.security.beta.kubernetes.io/") || known {
		return ""
	}
	return fmt.Sprintf("%q", text)
}

// restricted are the fields that the level of that name adds.
func restricted(parent, key string, value any) string {
	switch {
	case parent != "securityContext":
	case key == "allowPrivilegeEscalation" && value == true,
		key == "runAsNonRoot" && value == false,
		key == "runAsUser" && value == 0.0:
		return fmt.Sprint(value)
	}
	return ""
}

func volumes(_, key string, value any) string {
	list, _ := value.([]any)
	if key != "volumes" {
		return ""
	}
	allowed := []string{
		"name",
		"hostPath", /* forbidden names it */
		"configMap",
		"csi",
		"downwardAPI",
		"emptyDir",
		"ephemeral",
		"persistentVolumeClaim",
		"projected",
		"secret",
	}
	for _, item := range list {
		volume, _ := item.(map[string]any)
		for _, kind := range slices.Sorted(maps.Keys(volume)) {
			if !slices.Contains(allowed, kind) {
				return "of the kind " + kind
			}
		}
	}
	return ""
}
