// Command bench measures the agent on a real engine against the floor: the bare
// engine calls that the same result needs, with byte-identical request bodies,
// in the same run and alternating with the agent.
//
//	go run ./agent/bench [-o bench.json] [-rows REGEXP] [-n 20] [-idle 5m]
//
// It prints a table and writes it as JSON. A ratio compares medians. "Running"
// is the instant at which the container's own process writes a timestamp to a
// mounted file, for both.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	out := flag.String("o", "bench.json", "`file` for the rows as JSON")
	rows := flag.String("rows", ".", "measure only rows whose name matches")
	n := flag.Int("n", 20, "repetitions of a row")
	many := flag.Int("many", 5, "repetitions of the row of 50 pods; 3 at most of those with volumes")
	idle := flag.Duration("idle", 5*time.Minute, "how long to watch the idle agent")
	binary := flag.String("podkeeper", "bin/podkeeper", "the agent's `binary`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, options{regexp.MustCompile(*rows), *n, *many, *idle, *binary}, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	rows   *regexp.Regexp
	n      int
	many   int
	idle   time.Duration
	binary string
}

func run(ctx context.Context, opts options, out string) error {
	b, err := newBench(ctx, opts)
	if err != nil {
		return err
	}
	defer b.close()
	var report []Row
	for _, r := range b.rows() {
		if !opts.rows.MatchString(r.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, "bench:", r.name)
		got, err := r.measure(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		report = append(report, got...)
		write(report, out)
	}
	print(report)
	return write(report, out)
}

// Row is one line of the table. Figures are in its unit; Floor and Ratio are 0
// where a row has no floor.
type Row struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Floor  float64 `json:"floor,omitempty"`
	Ratio  float64 `json:"ratio,omitempty"`
	// Target is what is to be reached, in words; Note says more.
	Target string `json:"target,omitempty"`
	Note   string `json:"note,omitempty"`
}

func print(rows []Row) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tUNIT\tN\tMEDIAN\tMIN\tMAX\tFLOOR\tRATIO\tTARGET\tNOTE")
	for _, r := range rows {
		floor, ratio := "-", "-"
		if r.Floor > 0 {
			floor, ratio = fmt.Sprintf("%.1f", r.Floor), fmt.Sprintf("%.3f", r.Ratio)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%.1f\t%.1f\t%.1f\t%s\t%s\t%s\t%s\n", r.Name, r.Unit, r.N, r.Median, r.Min, r.Max, floor, ratio, r.Target, r.Note)
	}
	w.Flush()
}

func write(rows []Row, out string) error {
	data, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(data, '\n'), 0o644)
}
