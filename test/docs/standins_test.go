// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// What the stand-ins read from the environment.
const (
	envCalls   = "PLUMBLINE_DOCS_CALLS"
	envRoot    = "PLUMBLINE_DOCS_ROOT"
	envGit     = "PLUMBLINE_DOCS_GIT"
	envKubectl = "PLUMBLINE_DOCS_KUBECTL"
	envCluster = "PLUMBLINE_DOCS_CLUSTER"
)

// standIns are the programs of the page that this program stands in for, by name. They return an
// exit code. after is no program of the page: it lets the reader act between two blocks.
var standIns = map[string]func(args []string) int{
	"kind": func(args []string) int {
		if args[0] != "create" {
			return 0
		}
		return result(errors.Join(call("/kind", "arguments", strings.Join(args, " ")),
			copyFile(os.Getenv(envCluster), os.Getenv("KUBECONFIG"))))
	},
	"docker": func(args []string) int {
		n, err := io.Copy(io.Discard, os.Stdin)
		if err == nil && n == 0 {
			err = errors.New("no image is sent")
		}
		return result(errors.Join(err, call("/docker", "arguments", strings.Join(args, " "))))
	},
	"make": makes,
	"cloudflared": func(args []string) int {
		fmt.Println("https://some-words.trycloudflare.com")
		return result(call("/cloudflared", "arguments", strings.Join(args, " ")))
	},
	"openssl": func([]string) int {
		fmt.Println(strings.Repeat("0123456789abcdef", 4))
		return 0
	},
	"kubectl": kubectl,
	"git":     git,
	"after":   func(args []string) int { return result(call("/after", "block", args[0])) },
}

func result(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
		return 1
	}
	return 0
}

// makes writes what make images does, as far as the page uses it.
func makes(args []string) int {
	file, err := os.ReadFile(filepath.Join(os.Getenv(envRoot), "Makefile"))
	if err == nil && !strings.Contains(string(file), "\n"+args[0]+":") {
		err = fmt.Errorf("there is no target %s", args[0])
	}
	for _, name := range []string{"receiver", "controller"} {
		dir := filepath.Join("dist", "images", name)
		err = errors.Join(err, os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "index.json"), []byte("{}"), 0o600))
	}
	return result(err)
}

// kubectl is the real one, but for Tekton, which is there already, and for a port of a pod.
func kubectl(args []string) int {
	switch {
	case slices.Contains(args, "tekton-pipelines"):
		return 0
	case slices.Contains(args, "port-forward"):
		return result(call("/port-forward", "arguments", strings.Join(args, " ")))
	case strings.HasPrefix(args[len(args)-1], "https://"):
		return result(isTested(args[len(args)-1]))
	default:
		return run(os.Getenv(envKubectl), args)
	}
}

// isTested requires that the address of Tekton's manifests has the version that the tests run.
func isTested(address string) error {
	module, err := os.ReadFile(filepath.Join(os.Getenv(envRoot), "test/cluster/binaries/tekton/go.mod"))
	if err != nil {
		return err
	}
	version := regexp.MustCompile(`github.com/tektoncd/pipeline (v\S+)`).FindStringSubmatch(string(module))
	if version == nil || !strings.HasSuffix(address, "/"+version[1]+"/release.yaml") {
		return fmt.Errorf("%s is not the version that the tests run: %q", address, version)
	}
	return nil
}

// git is the real one, but for what leaves the machine.
func git(args []string) int {
	switch {
	case args[0] == "clone" && strings.HasSuffix(args[1], "/plumbline"):
		config := os.DirFS(filepath.Join(os.Getenv(envRoot), "config"))
		return result(errors.Join(os.Mkdir("plumbline", 0o755), os.CopyFS("plumbline/config", config)))
	case args[0] == "clone":
		if code := run(os.Getenv(envGit), []string{"init", "--quiet", "--initial-branch=main", args[2]}); code != 0 {
			return code
		}
		return run(os.Getenv(envGit), []string{"-C", args[2], "commit", "--quiet", "--allow-empty", "-m", "Begin"})
	case slices.Contains(args, "push"):
		clone, err := filepath.Abs(args[1])
		return result(errors.Join(err, call("/push", "clone", clone)))
	default:
		return run(os.Getenv(envGit), args)
	}
}

func run(path string, args []string) int {
	command := exec.Command(path, args...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return result(command.Run())
}

// call tells the test.
func call(path, key, value string) error {
	response, err := http.PostForm(os.Getenv(envCalls)+path, url.Values{key: {value}})
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(response.Body)
		return errors.Join(fmt.Errorf("%s", body), err)
	}
	return nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}
