package transfer

import (
	"regexp"
	"strconv"
	"strings"

	"tierbench.io/client/internal/contract"
)

var (
	wgetTry    = regexp.MustCompile(`^--.*--  \(try: ?(\d+)\)  `)
	wgetSaved  = regexp.MustCompile(` saved \[(\d+)(?:/\d+)?\]$`)
	wgetStatus = regexp.MustCompile(`awaiting response\.\.\. 5\d\d `)
)

// wgetArguments returns the arguments for the same transfer, with the same limits and pauses.
func (p *Program) wgetArguments(options *Options, address string, index int) []string {
	arguments := []string{
		"--no-config", "--no-hsts", "--no-proxy", "--no-show-progress", "--output-document=/dev/null",
		"--tries=" + strconv.Itoa(options.Attempts), "--read-timeout=" + seconds(options.ReadTimeout),
		"--connect-timeout=" + seconds(options.ReadTimeout), "--retry-connrefused", "--retry-on-http-error=500,501,502,503,504",
	}
	if options.WaitMaximum > 0 { // the pauses grow by a second each
		arguments = append(arguments, "--waitretry="+seconds(options.WaitMaximum))
	} else {
		arguments = append(arguments, "--waitretry=0", "--wait="+seconds(options.Wait))
	}
	if options.TLS != nil {
		version := map[string]string{"TLSv1.2": "TLSv1_2", "TLSv1.3": "TLSv1_3"}[p.TLS]
		arguments = append(arguments, "--secure-protocol="+version, "--no-check-certificate", "--pinnedpubkey="+p.pin)
	}
	if options.Upload {
		arguments = append(arguments, "--method=PUT", "--body-file="+uploadedFile)
	}
	return append(arguments, place(options, address, index))
}

// wgetReader counts retries as wget does: each further try has its number.
type wgetReader struct {
	tries  int
	bytes  int64
	causes map[string]int64
	cause  string // of the current try
	last   string
}

func (r *wgetReader) line(text string) {
	if try := wgetTry.FindStringSubmatch(text); try != nil {
		r.tries, _ = strconv.Atoi(try[1])
		if r.cause != "" {
			r.causes[r.cause]++
		}
		r.cause = ""
		return
	}
	if saved := wgetSaved.FindStringSubmatch(text); saved != nil {
		r.bytes, _ = strconv.ParseInt(saved[1], 10, 64)
	}
	switch {
	case strings.Contains(text, "failed: Connection refused"):
		r.cause = contract.Refused
	case strings.Contains(text, "failed: "):
		r.cause = contract.Unreachable
	case strings.Contains(text, "Read error") && strings.Contains(text, "timed out"):
		r.cause = contract.Stalled
	case strings.Contains(text, "Read error"):
		r.cause = contract.Reset
	case strings.Contains(text, "Connection closed at byte"), strings.Contains(text, "No data received"):
		r.cause = contract.Truncated
	case wgetStatus.MatchString(text):
		r.cause = contract.ServerError
	case strings.HasPrefix(text, "--"), text == "Retrying.", text == "Giving up.":
		return
	}
	r.last = text
}

func (r *wgetReader) findings() findings {
	tries := max(1, r.tries)
	return findings{bytes: r.bytes, retries: int64(tries - 1), causes: r.causes, last: r.last, attempts: tries}
}
