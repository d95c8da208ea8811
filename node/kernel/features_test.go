package kernel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/node/kernel"
)

// Huge pages are a resource of each size that the machine has set some aside of, or
// could have.
func TestHugePages(t *testing.T) {
	dir := settings(t, map[string]string{
		"hugepages-2048kB/nr_hugepages": "8", "hugepages-1048576kB/nr_hugepages": "0", "hugepages-64kB/nr_hugepages": "x", "other/nr_hugepages": "1",
	})
	want := map[v1.ResourceName]int64{"hugepages-2Mi": 16 << 20, "hugepages-1Gi": 0}
	if diff := cmp.Diff(want, kernel.HugePages(dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := kernel.HugePages(dir + "/none"); len(got) != 0 {
		t.Errorf("a machine without them has %v", got)
	}
}
