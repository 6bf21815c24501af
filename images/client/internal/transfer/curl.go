package transfer

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"tierbench.io/client/internal/contract"
)

// curlReport is the format of what curl writes after a transfer, about its last attempt.
const curlReport = `%{stderr}\n{"bytes":%{size_download},"lookup":%{time_namelookup},"connect":%{time_connect},` +
	`"tls":%{time_appconnect},"request":%{time_pretransfer},"response":%{time_starttransfer}}\n`

// curlArguments returns the arguments for the same transfer, with the same limits and pauses. curl writes to its standard
// output, which is /dev/null: it cannot retry what it has written to a file that cannot be truncated.
func (p *Program) curlArguments(options *Options, address string, index int) []string {
	limit := strconv.Itoa(max(1, int(options.ReadTimeout/time.Second)))
	arguments := []string{
		"--disable", "--no-progress-meter", "--noproxy", "*", "--fail", "--retry", strconv.Itoa(options.Attempts - 1), "--retry-all-errors",
		"--retry-connrefused", "--retry-delay", strconv.Itoa(max(1, int(options.Wait/time.Second))),
		"--connect-timeout", seconds(options.ReadTimeout), "--speed-limit", "1", "--speed-time", limit, "--write-out", curlReport,
	}
	host := address
	if options.TLS != nil {
		name := p.ServerName
		if name == "" {
			name = options.URL.Hostname()
		}
		host = hostOf(name, address)
		version := strings.TrimPrefix(p.TLS, "TLSv")
		arguments = append(arguments, "--connect-to", host+":"+address, "--tlsv"+version, "--tls-max", version)
		if p.CAFile != "" {
			arguments = append(arguments, "--cacert", p.CAFile)
		}
	}
	if options.Upload {
		arguments = append(arguments, "--upload-file", uploadedFile)
	}
	return append(arguments, place(options, host, index))
}

// curlReader counts the retries that curl announces, and reads what it writes at the end.
type curlReader struct {
	upload  bool
	retries int64
	causes  map[string]int64
	cause   string
	last    string
	end     struct {
		Bytes                                   int64
		Lookup, Connect, TLS, Request, Response float64
	}
}

func (r *curlReader) line(text string) {
	switch {
	case strings.HasPrefix(text, "{"):
		_ = json.Unmarshal([]byte(text), &r.end)
	case strings.HasPrefix(text, "curl: ("):
		number, message, _ := strings.Cut(strings.TrimPrefix(text, "curl: ("), ")")
		r.cause, r.last = curlCause(number, message), text
	case strings.Contains(text, "Will retry in"):
		r.retries++
		if strings.Contains(text, "connection refused") {
			r.cause = contract.Refused
		}
		if r.cause != "" {
			r.causes[r.cause]++
		}
		r.cause = ""
	}
}

// curlCause returns the cause that an error of curl means, by its number, or nothing.
func curlCause(number, message string) string {
	switch number {
	case "7":
		return contract.Unreachable
	case "18", "52":
		return contract.Truncated
	case "22":
		return contract.ServerError
	case "28":
		if strings.Contains(message, "onnect") {
			return contract.Unreachable
		}
		return contract.Stalled
	case "55", "56":
		return contract.Reset
	}
	return ""
}

// findings returns no phases if there were retries, because curl reports only those of its last attempt.
func (r *curlReader) findings() findings {
	found := findings{bytes: r.end.Bytes, retries: r.retries, causes: r.causes, last: r.last, attempts: int(r.retries) + 1}
	if r.retries == 0 && r.last == "" {
		found.phases.connect = since(r.end.Lookup, r.end.Connect)
		found.phases.tls = since(r.end.Connect, r.end.TLS)
		if !r.upload {
			found.phases.firstByte = since(r.end.Request, r.end.Response)
		}
	}
	return found
}

// since returns the time between two readings in seconds. It is 0 if there is no second one.
func since(earlier, later float64) time.Duration {
	return max(0, time.Duration((later-earlier)*float64(time.Second)))
}
