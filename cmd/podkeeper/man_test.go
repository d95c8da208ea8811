package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var manFolder = flag.String("man", "", "write the man pages into this folder")

// TestManPages writes the manual, by `make man` to where somebody wants it: a page for
// each command. What writes it is in no program.
func TestManPages(t *testing.T) {
	dir := *manFolder
	if dir == "" {
		dir = t.TempDir()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root := (&cli{version: "v0"}).rootCommand()
	root.DisableAutoGenTag = true
	day := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) // the same pages each time
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "8", Source: "Podkeeper", Manual: "Podkeeper", Date: &day}, dir); err != nil {
		t.Fatal(err)
	}
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				each(sub)
			}
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		page, err := os.ReadFile(filepath.Join(dir, name+".8"))
		if err != nil || !strings.Contains(string(page), ".SH SYNOPSIS") {
			t.Errorf("%s: %v", name, err)
		}
		if cmd.Runnable() && !strings.Contains(string(page), cmd.Short) {
			t.Errorf("%s does not say %q", name, cmd.Short)
		}
	}
	each(root)
	page, err := os.ReadFile(filepath.Join(dir, "podkeeper.8"))
	if err != nil || !strings.Contains(string(page), "no agent answers on the socket") {
		t.Errorf("podkeeper.8 does not tell the exit codes: %v", err)
	}
}
