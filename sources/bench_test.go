package sources_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/sources"
)

// BenchmarkIdleLook is one periodic look at a folder of 50 files in which
// nothing changed.
func BenchmarkIdleLook(b *testing.B) {
	dir := b.TempDir()
	old := time.Now().Add(-time.Hour)
	for i := range 50 {
		name := fmt.Sprintf("%s/p%02d.yaml", dir, i)
		if err := os.WriteFile(name, fmt.Appendf(nil, "p%02d x:1", i), 0o600); err != nil {
			b.Fatal(err)
		}
		if err := os.Chtimes(name, old, old); err != nil {
			b.Fatal(err)
		}
	}
	look, err := sources.LookForBenchmark(sources.FileConfig{
		Path: dir, Parse: parse, FS: sources.OSFiles{}, Watcher: &sources.OSWatcher{}, Log: discard,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		look()
	}
}
