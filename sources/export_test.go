package sources

import "time"

// LookForBenchmark returns a function that looks once at a folder that is known
// and has not changed.
func LookForBenchmark(cfg FileConfig) (look func(), err error) {
	f, err := NewFile(cfg)
	if err != nil {
		return nil, err
	}
	h := &hinter{watcher: cfg.Watcher, log: cfg.Log}
	l := newFolder(f.cfg, f.id, h, newWriter(nil, f.id, f.cfg.Now, cfg.Log))
	now := time.Now()
	look = func() {
		now = now.Add(f.cfg.Period)
		l.look(now)
	}
	look() // reads
	look() // is sure of what it read
	return look, nil
}
