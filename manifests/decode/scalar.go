package decode

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// What the YAML tags are called in the trees of the parser.
const (
	tagString = "!!str"
	tagBool   = "!!bool"
	tagInt    = "!!int"
	tagFloat  = "!!float"
	tagNull   = "!!null"
	tagTime   = "!!timestamp"
	tagBinary = "!!binary"
	tagMerge  = "!!merge"
)

var (
	errTag    = errors.New("the value does not fit its tag")
	errBase64 = errors.New("the value of a !!binary is not base64")
	errNumber = errors.New("infinities and NaN have no place in a manifest")
	errKey    = errors.New("this cannot be a key")
)

// scalar is what a YAML scalar means: a kind, its JSON literal or text, and the
// tag that it resolved to. value is set for numbers.
type scalar struct {
	kind  Kind
	text  string
	tag   string
	value any // int64, uint64, float64
}

// resolve gives a scalar its meaning by the rules of the YAML that the kubelet
// reads (1.1, with the readings of its library), not by those of the parser that
// gave us the positions: y and off are booleans, 0o17 and 0b11 numbers,
// 1_000 a thousand, a time a string. tag is "" where none is written; quoted
// scalars without a tag are strings and never get here.
func resolve(tag, in string) (scalar, error) {
	switch tag {
	case "", tagBool, tagInt, tagFloat, tagNull, tagTime:
	case tagBinary:
		data, err := base64.StdEncoding.DecodeString(in)
		if err != nil {
			return scalar{}, errBase64
		}
		return scalar{kind: String, text: string(data), tag: tagBinary}, nil
	default: // !!str, and tags that nobody knows
		return scalar{kind: String, text: in, tag: tag}, nil
	}
	s := implicit(tag, in)
	if tag == tagFloat && s.tag == tagInt {
		if i, ok := s.value.(int64); ok {
			s.tag, s.value = tagFloat, float64(i)
		}
	}
	if tag != "" && tag != s.tag {
		return scalar{}, errTag
	}
	return s.literal()
}

// literal fills in the JSON literal of a number.
func (s scalar) literal() (scalar, error) {
	if s.kind != Number {
		return s, nil
	}
	if f, ok := s.value.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		return scalar{}, errNumber
	}
	text, err := json.Marshal(s.value)
	if err != nil {
		return scalar{}, errNumber
	}
	s.text = string(text)
	return s, nil
}

// key returns the scalar as the key of a JSON object.
func (s scalar) key() (string, error) {
	switch v := s.value.(type) {
	case nil:
		if s.kind == Null {
			return "", errKey
		}
		return s.text, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 32), nil
	default:
		return "", errKey
	}
}

func implicit(tag, in string) scalar {
	text := scalar{kind: String, text: in, tag: tagString}
	if in == "" {
		return scalar{kind: Null, tag: tagNull}
	}
	switch c := in[0]; {
	case strings.IndexByte("yYnNtTfFoO~", c) >= 0:
		return word(in, text)
	case c == '.':
		switch in {
		case ".nan", ".NaN", ".NAN":
			return float(math.NaN())
		case ".inf", ".Inf", ".INF":
			return float(math.Inf(1))
		}
		if f, err := strconv.ParseFloat(in, 64); err == nil {
			return float(f)
		}
		return text
	case c == '+' || c == '-' || c >= '0' && c <= '9':
		switch in {
		case "+.inf", "+.Inf", "+.INF":
			return float(math.Inf(1))
		case "-.inf", "-.Inf", "-.INF":
			return float(math.Inf(-1))
		}
		if (tag == "" || tag == tagTime) && isTime(in) {
			return scalar{kind: String, text: in, tag: tagTime}
		}
		return number(in, text)
	default:
		return text
	}
}

// word returns a boolean, a null, or else what it was given.
func word(in string, text scalar) scalar {
	switch in {
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return scalar{kind: Bool, text: "true", tag: tagBool}
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return scalar{kind: Bool, text: "false", tag: tagBool}
	case "~", "null", "Null", "NULL":
		return scalar{kind: Null, tag: tagNull}
	}
	return text
}

func float(f float64) scalar { return scalar{kind: Number, tag: tagFloat, value: f} }

var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// number returns a number, or else what it was given.
func number(in string, text scalar) scalar {
	plain := strings.ReplaceAll(in, "_", "")
	// Base 0 takes 0x, 0o, 0b and the octal 0755.
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return scalar{kind: Number, tag: tagInt, value: i}
	}
	if u, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return scalar{kind: Number, tag: tagInt, value: u}
	}
	if decimal.MatchString(plain) {
		if f, err := strconv.ParseFloat(plain, 64); err == nil {
			return float(f)
		}
	}
	// The library also takes a sign after 0b.
	if digits, ok := strings.CutPrefix(plain, "0b"); ok {
		if i, err := strconv.ParseInt(digits, 2, 64); err == nil {
			return scalar{kind: Number, tag: tagInt, value: i}
		}
	} else if digits, ok := strings.CutPrefix(plain, "-0b"); ok {
		if i, err := strconv.ParseInt("-"+digits, 2, 64); err == nil {
			return scalar{kind: Number, tag: tagInt, value: i}
		}
	}
	return text
}

// isTime reports whether YAML takes the text for a time. Times stay strings, but
// 2024-01-01 would else be looked at as a number.
func isTime(s string) bool {
	if len(s) < 5 || s[4] != '-' || strings.Trim(s[:4], "0123456789") != "" {
		return false
	}
	for _, layout := range []string{
		"2006-1-2T15:4:5.999999999Z07:00",
		"2006-1-2t15:4:5.999999999Z07:00",
		"2006-1-2 15:4:5.999999999",
		"2006-1-2",
	} {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	return false
}
