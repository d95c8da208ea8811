package kubeletapi

// Patterns are the routes, each as "METHOD /pattern".
func Patterns(a Answers) (list []string) {
	for _, r := range routes(&a) {
		for _, m := range r.methods {
			list = append(list, m+" "+r.pattern)
		}
	}
	return list
}

// MaxEntries is how many entries of a folder are listed.
const MaxEntries = maxEntries

// ParseLogQuery is what reads the query of /containerLogs.
var ParseLogQuery = logQuery
