package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// EnsureOOMScoreAdj sets how gladly the kernel kills a process when memory runs
// out, from -1000 (never) to 1000. dir is /proc/self, or that of another process.
// Without CAP_SYS_RESOURCE the kernel lets nobody below what the process was
// started with.
func EnsureOOMScoreAdj(dir string, adj int) error {
	err := os.WriteFile(filepath.Join(dir, "oom_score_adj"), []byte(strconv.Itoa(adj)), 0)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("oom_score_adj %d takes CAP_SYS_RESOURCE: %w", adj, err)
	case err != nil:
		return fmt.Errorf("set oom_score_adj: %w", err)
	}
	return nil
}
