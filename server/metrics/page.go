package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// page is one page for Prometheus, made anew for each request: collect writes what is
// there now. Its error is a 503.
type page struct {
	// busy has room for as many requests as are answered at a time. Others are told to
	// come again: whoever can reach a page cannot keep the machine at it.
	busy    chan struct{}
	collect func(context.Context, func(prometheus.Metric)) error
	// besides are what was counted all along.
	besides []prometheus.Gatherer
	log     *slog.Logger
}

// atOnce is how many scrapes of a page go on beside each other.
const atOnce = 4

func newPage(log *slog.Logger, collect func(context.Context, func(prometheus.Metric)) error, besides ...prometheus.Gatherer) page {
	return page{busy: make(chan struct{}, atOnce), collect: collect, besides: besides, log: log}
}

func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case p.busy <- struct{}{}:
		defer func() { <-p.busy }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many scrapes at once; try again later", http.StatusTooManyRequests)
		return
	}
	var list made
	if p.collect != nil {
		if err := p.collect(r.Context(), func(m prometheus.Metric) { list = append(list, m) }); err != nil {
			http.Error(w, "not available: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(list)
	promhttp.HandlerFor(append(prometheus.Gatherers{reg}, p.besides...), promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: complaints{p.log},
	}).ServeHTTP(w, r)
}

// made are metrics of one instant, as a collector.
type made []prometheus.Metric

// Describe says nothing beforehand: which there are depends on what runs.
func (made) Describe(chan<- *prometheus.Desc) {}

// Collect is that of prometheus.Collector.
func (m made) Collect(ch chan<- prometheus.Metric) {
	for _, one := range m {
		ch <- one
	}
}

// complaints are those of promhttp.
type complaints struct{ log *slog.Logger }

// Println is that of promhttp.Logger.
func (c complaints) Println(v ...any) { c.log.Warn("a page of metrics is not whole", "err", v) }

// seconds and number return nil for what is not known.
func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}

func number(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}
