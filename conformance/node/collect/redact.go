package collect

import (
	"strings"

	"github.com/winlab-dev/winlab/internal/lazyregexp"
)

// Redacted replaces a value that was removed.
const Redacted = "REDACTED"

var (
	pemBlock = lazyregexp.New(`(?s)-----BEGIN [^-\n]{1,40}-----.*?(?:-----END [^-\n]{1,40}-----|\z)`)
	jwt      = lazyregexp.New(`\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,4}`)
	scheme   = lazyregexp.New(`(?i)\b(bearer|basic|sharedkey|negotiate)(\s+)[A-Za-z0-9+/=._~:-]{8,}`)
	userInfo = lazyregexp.New(`(://)[^\s/@"']+(@)`)
	// bootstrapToken is Kubernetes' own form of a token that joins a node.
	bootstrapToken = lazyregexp.New(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	// named is a value behind a name that says what it is: NAME=value, "name": "value", and
	// --name value.
	secretName = `[\w.-]*(?:passw(?:or)?d|passphrase|\bpwd|secret|token|api[_.-]?key|access[_.-]?key|account[_.-]?key|storage[_.-]?key|shared[_.-]?key|private[_.-]?key|key[_.-]?data|cert[\w.-]*-data|credential|connection[_.-]?string|\bauth\b|\bsig\b|\bsas\b|cookie)[\w.-]*`
	named      = lazyregexp.New(`(?i)(` + secretName + `)(["']?\s*[:=]\s*)("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,;&}\]"']+)`)
	wholeName  = lazyregexp.New(`(?i)^` + secretName + `$`)
	flagged    = lazyregexp.New(`(?i)(--?` + secretName + `)(\s+)("[^"\n]*"|[^\s"-][^\s]*)`)
)

// Redact takes out of a text what looks like a secret, and returns how many values it took. It
// takes rather too much than too little; a value that only says whether, or in which file, stays.
func Redact(text string) (string, int) {
	n := 0
	text = pemBlock.ReplaceAllStringFunc(text, func(string) string { n++; return Redacted })
	text = replace(text, userInfo, &n, func(m []string) string { return m[1] + Redacted + m[2] })
	text = replace(text, scheme, &n, func(m []string) string { return m[1] + m[2] + Redacted })
	for _, re := range []*lazyregexp.Regexp{named, flagged} {
		text = replace(text, re, &n, func(m []string) string {
			if harmless(m[1], m[3]) {
				return m[0]
			}
			quote := ""
			if q := m[3][0]; q == '"' || q == '\'' {
				quote = string(q)
			}
			return m[1] + m[2] + quote + Redacted + quote
		})
	}
	for _, re := range []*lazyregexp.Regexp{jwt, bootstrapToken} {
		text = re.ReplaceAllStringFunc(text, func(string) string { n++; return Redacted })
	}
	return text, n
}

// replace replaces every match of re whose replacement is another text, and counts them.
func replace(text string, re *lazyregexp.Regexp, n *int, with func([]string) string) string {
	return re.ReplaceAllStringFunc(text, func(s string) string {
		out := with(re.FindStringSubmatch(s))
		if out != s {
			*n++
		}
		return out
	})
}

// harmless reports whether a value whose name sounds like a secret is not one.
func harmless(name, value string) bool {
	name, value = strings.ToLower(name), strings.ToLower(strings.Trim(value, `"'`))
	switch value {
	case "", "true", "false", "null", "<nil>", "none", strings.ToLower(Redacted), strings.ToLower(Redacted) + "@":
		return true
	}
	for _, end := range []string{"file", "path", "dir", "mode", "webhook", "ttl", "timeout", "name"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// publicVariables are the variables whose values are kept: they say how the network is used, or
// which machine this is.
var publicVariables = map[string]bool{
	"COMPUTERNAME": true, "SYSTEMROOT": true, "WINDIR": true, "OS": true, "PATHEXT": true, "PROGRAMDATA": true, "COMSPEC": true,
	"PROCESSOR_ARCHITECTURE": true, "NUMBER_OF_PROCESSORS": true,
	"HTTP_PROXY": true, "HTTPS_PROXY": true, "NO_PROXY": true, "ALL_PROXY": true,
	"KUBE_NETWORK": true, "NODE_NAME": true, "NODENAME": true, "KUBERNETES_SERVICE_HOST": true, "KUBERNETES_SERVICE_PORT": true,
	"GODEBUG":     true,
	"CNI_BIN_DIR": true, "CNI_CONF_DIR": true, "CNI_PATH": true, "VXLAN_VNI": true, "VXLAN_MAC_PREFIX": true,
	"CALICO_NETWORKING_BACKEND": true, "FELIX_HEALTHENABLED": true,
}

// Variables writes variables of an environment as cmd's set does: values that are not known to
// be public are taken out.
func Variables(env []string) (text string, redacted int) {
	var b strings.Builder
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			continue // of cmd: "=C:=C:\k"
		}
		if !publicVariables[strings.ToUpper(name)] {
			value = Redacted
			redacted++
		} else {
			var n int
			value, n = Redact(value)
			redacted += n
		}
		b.WriteString(name + "=" + value + "\r\n")
	}
	return b.String(), redacted
}

// PublicVariable reports whether the value of a variable of the environment may be kept.
func PublicVariable(name string) bool { return publicVariables[strings.ToUpper(name)] }

// SecretName reports whether a value is a secret by the name of its field, or of its annotation.
func SecretName(name, value string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	return wholeName.MatchString(name) && !harmless(name, value)
}

// RedactArguments is [Redact] for the words of a command line: a value may be the word behind
// the flag that says what it is.
func RedactArguments(words []string) (redacted []string, n int) {
	for i, w := range words {
		text, count := Redact(w)
		if i > 0 && count == 0 && strings.HasPrefix(words[i-1], "-") && !strings.ContainsAny(words[i-1], "= \t\n") && !strings.HasPrefix(w, "-") {
			if SecretName(strings.TrimLeft(words[i-1], "-"), w) {
				text, count = Redacted, 1
			}
		}
		redacted, n = append(redacted, text), n+count
	}
	return redacted, n
}
