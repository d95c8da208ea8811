package oracle

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rewrite changes the paths of errors that match.
type rewrite struct {
	from     *regexp.Regexp
	to       string
	onlyType field.ErrorType // "" is every type
}

// noIndex: upstream names the list, and so not the line, where we name the item;
// for init containers it names the first in place of the one that is meant. The
// verdict is the same. What only we say is taken out of both.
var noIndex = []rewrite{
	{from: regexp.MustCompile(`(\.volumeMounts)\[\d+\]\.(subPath|subPathExpr|mountPropagation|recursiveReadOnly)$`), to: "$1.$2"},
	{from: regexp.MustCompile(`(\.envFrom)\[\d+\]$`), to: "$1"},
	{from: regexp.MustCompile(`(\.downwardAPI)\.items\[\d+\]`), to: "$1"},
	{from: regexp.MustCompile(`(\.projected)\.sources\[\d+\]\.serviceAccountToken\.path$`), to: "$1.path"},
	{from: regexp.MustCompile(`^(spec\.initContainers)\[\d+\](\.ports\[\d+\]\.hostPort)$`), to: "$1[0]$2", onlyType: field.ErrorTypeDuplicate},
}

// misspelt: upstream names a field that no manifest can have. The verdict is the
// same. From theirs to ours.
var misspelt = []rewrite{
	{from: regexp.MustCompile(`(\.volumes\[\d+\])\.persistentDisk\.`), to: "$1.gcePersistentDisk."},
	{from: regexp.MustCompile(`(\.volumes\[\d+\])\.cephFS$`), to: "$1.cephfs"},
	{from: regexp.MustCompile(`(\.volumes\[\d+\])\.downwarAPI$`), to: "$1.downwardAPI"},
	{from: regexp.MustCompile(`(\.iscsi)\.initiatorname$`), to: "$1.initiatorName"},
	{from: regexp.MustCompile(`(\.csi)\.name$`), to: "$1.nodePublishSecretRef.name"},
	{from: regexp.MustCompile(`(\.volumeClaimTemplate\.metadata)\.uID$`), to: "$1.uid"},
	{from: regexp.MustCompile(`^spec\.Host(PID|IPC)$`), to: "spec.host$1"},
}

// There are two differences of verdict.

// strictEnvName (case C024), an error of ours: since 1.34 upstream takes nearly
// every character in the name of a variable. A name such as "1X" or "A B" cannot
// be used in a shell; we refuse it as Kubernetes did until then.
func strictEnvName(err *field.Error) bool {
	name, isString := err.BadValue.(string)
	return isString && envName.MatchString(err.Field) && err.Type == field.ErrorTypeInvalid &&
		len(validation.IsEnvVarName(name)) > 0 && len(validation.IsRelaxedEnvVarName(name)) == 0
}

var envName = regexp.MustCompile(`\.env\[\d+\]\.name$`)

// quotedPort (case C095), an error of theirs: port "80" of a probe or hook is
// neither a number nor a name to upstream's validation, but a number to the code
// that probes. We take it for one.
func quotedPort(err *field.Error) bool {
	port, isString := err.BadValue.(string)
	return isString && actionPort.MatchString(err.Field) && err.Type == field.ErrorTypeInvalid &&
		number.MatchString(port) && len(port) <= 5 && (len(port) < 5 || port <= "65535")
}

var (
	actionPort = regexp.MustCompile(`\.(httpGet|tcpSocket)\.port$`)
	number     = regexp.MustCompile(`^[1-9][0-9]*$`)
)

func applied(rules []rewrite, errs field.ErrorList) field.ErrorList {
	var list field.ErrorList
	for _, err := range errs {
		copied := *err
		for _, rule := range rules {
			if rule.onlyType == "" || rule.onlyType == err.Type {
				copied.Field = rule.from.ReplaceAllString(copied.Field, rule.to)
			}
		}
		list = append(list, &copied)
	}
	return list
}

func without(drop func(*field.Error) bool, errs field.ErrorList) field.ErrorList {
	var list field.ErrorList
	for _, err := range errs {
		if !drop(err) {
			list = append(list, err)
		}
	}
	return list
}
