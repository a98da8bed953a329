// SPDX-License-Identifier: Apache-2.0

// Command scan fails for vulnerabilities that the product's commands can reach and that upstream
// has fixed. It runs govulncheck, which exits the same whether there is a fix or not, and reads its
// findings.
//
//	scan [-dir .] [-db https://vuln.go.dev] ./cmd/...
//
// It exits with 1 for such a vulnerability, and with 2 when the scan itself failed, because the
// database could not be asked for example: nothing is known then.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/vuln/scan"
)

// errFound is returned when the scan found a vulnerability that has a fix.
var errFound = errors.New("vulnerabilities that are reachable and fixed upstream: raise the modules that are named (go get module@version), or Go itself for stdlib")

func main() {
	dir := flag.String("dir", ".", "the module to scan")
	database := flag.String("db", "https://vuln.go.dev", "the vulnerability database, or a mirror of it: https://… or file:///…")
	flag.Parse()
	switch err := run(context.Background(), os.Stdout, *database, *dir, flag.Args()); {
	case errors.Is(err, errFound):
		fmt.Fprintln(os.Stderr, "scan:", err)
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "scan: nothing is known:", err)
		os.Exit(2)
	}
}

// finding is a vulnerability of the list that govulncheck prints; "osv" is its id in the database.
type finding struct {
	ID    string  `json:"osv"`
	Fixed string  `json:"fixed_version"`
	Trace []frame `json:"trace"` // what is vulnerable is first, what calls it in the end last
}

type frame struct {
	Module, Version, Package, Function string
}

// message is one of govulncheck's JSON stream; it has one of the fields.
type message struct {
	Config *struct {
		Modified *string `json:"db_last_modified"`
	}
	Finding *finding
}

// run scans the packages of a module and prints each reachable vulnerability once.
func run(ctx context.Context, out io.Writer, database, dir string, packages []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results, writer := io.Pipe()
	command := scan.Command(ctx, append([]string{"-format=json", "-db=" + database, "-C=" + dir}, packages...)...)
	command.Stdout = writer
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting govulncheck: %w", err)
	}
	go func() { _ = writer.CloseWithError(command.Wait()) }() // nil is the end of what is read
	reachable, err := read(results)
	if errors.Is(err, errNoDatabase) {
		err = fmt.Errorf("%s: %w", database, err)
	}
	if err != nil {
		return err
	}
	return report(out, reachable)
}

// report prints what was found, and fails if there is a fix for any of it.
func report(out io.Writer, reachable []finding) error {
	fixed := 0
	for _, found := range reachable {
		at := found.Trace[0]
		advice := "no fix yet"
		if found.Fixed != "" {
			advice = "fixed in " + found.Fixed
			fixed++
		}
		fmt.Fprintf(out, "%s: %s@%s %s.%s, called from %s: %s; https://pkg.go.dev/vuln/%s\n",
			found.ID, at.Module, at.Version, at.Package, at.Function, found.Trace[len(found.Trace)-1].Package, advice, found.ID)
	}
	fmt.Fprintf(out, "%d vulnerabilities can be reached, %d of them are fixed upstream\n", len(reachable), fixed)
	if fixed > 0 {
		return errFound
	}
	return nil
}

// errNoDatabase is returned when the database did not answer. Govulncheck notices that, too, but
// only after it has read all packages, which takes minutes.
var errNoDatabase = errors.New("the vulnerability database does not answer: give the address of a mirror, for example make scan DB=https://mirror.example.com or DB=file:///srv/vulndb (https://go.dev/doc/security/vuln/database)")

// read returns the findings about functions that are called, one for each vulnerability and module,
// in their order.
func read(results io.Reader) ([]finding, error) {
	var reachable []finding
	asked := false
	for stream := json.NewDecoder(results); ; {
		var m message
		if err := stream.Decode(&m); errors.Is(err, io.EOF) {
			return reachable, nil
		} else if err != nil && !asked { // its first message comes when it has found the database
			return nil, fmt.Errorf("%w (govulncheck: %w)", errNoDatabase, err)
		} else if err != nil {
			return nil, fmt.Errorf("running govulncheck: %w", err)
		}
		if m.Config != nil && m.Config.Modified == nil {
			return nil, errNoDatabase
		}
		asked = true
		if m.Finding == nil || len(m.Finding.Trace) == 0 || m.Finding.Trace[0].Function == "" {
			continue // about a module or package that is there, and not called
		}
		if !slices.ContainsFunc(reachable, m.Finding.same) {
			reachable = append(reachable, *m.Finding)
		}
	}
}

func (f *finding) same(other finding) bool {
	return f.ID == other.ID && f.Trace[0].Module == other.Trace[0].Module
}
