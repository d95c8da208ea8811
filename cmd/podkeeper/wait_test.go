package main

import "testing"

func TestOnlyAWaitForAnExitHasNoLimit(t *testing.T) {
	for _, goal := range []string{"condition=Ready", "phase=Succeeded", "delete"} {
		if got := defaultTimeout(goal); got <= 0 {
			t.Errorf("a wait for %s gives up after %s, want that it does in time", goal, got)
		}
	}
	if got := defaultTimeout("exit"); got >= 0 {
		t.Errorf("a wait for an exit gives up after %s, want never", got)
	}
}
