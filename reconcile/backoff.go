package reconcile

import "time"

// The crash loop's numbers are the kubelet's: the first restart is at once, the
// second after 10 s, then doubling to 5 min; 10 min of running start it anew.
const (
	crashBase  = 10 * time.Second
	crashMax   = 5 * time.Minute
	crashReset = 10 * time.Minute
	// maxLevel is the first level whose delay is crashMax; higher ones are alike.
	maxLevel = 7
)

// nextLevel returns the level of a crash loop after an attempt that ran for
// that long. Level n counts n ends in a row of short attempts.
func nextLevel(level int, ran time.Duration) int {
	if ran >= crashReset {
		return 1
	}
	return min(level+1, maxLevel)
}

// crashDelay returns how long after the end of an attempt the next one starts.
func crashDelay(level int) time.Duration {
	if level <= 1 {
		return 0
	}
	return doubled(crashBase, crashMax, level-2)
}

// imageDelay returns the wait after the n-th failed pull in a row, from 1.
func imageDelay(n int) time.Duration { return doubled(10*time.Second, 5*time.Minute, n-1) }

// imageRecheck is how long a pod that cannot run an image as it is waits before
// it looks for another one of that name.
const imageRecheck = 10 * time.Second

// stepDelay returns the wait after the n-th failed step in a row, from 1.
func stepDelay(n int) time.Duration { return doubled(time.Second, time.Minute, n-1) }

// overLimitDelay returns how long a pod stays away that its own limit evicted for
// the n-th time in a row, from 1.
func overLimitDelay(n int) time.Duration { return doubled(10*time.Second, 5*time.Minute, n-1) }

func doubled(base, limit time.Duration, times int) time.Duration {
	d := base
	for range times {
		if d >= limit {
			break
		}
		d *= 2
	}
	return min(d, limit)
}

// happenedAt returns the instant, on the monotonic clock of now, at which something
// happened, by the wall clock at, that was seen just now: that a container began
// or ended. Where the agent watched, that is now. Where it was down, the wall clock
// says how long ago; one that jumped back cannot make it later than now.
func happenedAt(now, wall, at time.Time, watched bool) time.Time {
	if watched || at.IsZero() {
		return now
	}
	return now.Add(-max(0, wall.Sub(at)))
}
