package computer

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const mostCharacters = 63 // of a name, by the contract

// text returns the content of a file. It is empty if the kernel has no such file, or refuses to read it.
func text(parts ...string) string {
	content, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// word returns the content of a file, cut to the length that the contract allows.
func word(parts ...string) string {
	found := text(parts...)
	return found[:min(len(found), mostCharacters)]
}

// number returns the number in a file, or nil if there is none or it is negative.
func number(parts ...string) *int64 {
	value, err := strconv.ParseInt(text(parts...), 10, 64)
	if err != nil || value < 0 {
		return nil
	}
	return &value
}

// matching returns the files that match a pattern.
func matching(parts ...string) []string {
	files, err := filepath.Glob(filepath.Join(parts...))
	if err != nil {
		return nil
	}
	return files
}
