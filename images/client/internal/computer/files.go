package computer

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const mostCharacters = 63 // of a name, by the contract

// text of a file; empty where this kernel has none, or will not say.
func text(parts ...string) string {
	content, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// word is the same, as short as the contract has it.
func word(parts ...string) string {
	found := text(parts...)
	return found[:min(len(found), mostCharacters)]
}

// number in a file; nil where there is none, or a negative one.
func number(parts ...string) *int64 {
	value, err := strconv.ParseInt(text(parts...), 10, 64)
	if err != nil || value < 0 {
		return nil
	}
	return &value
}

// matching are the files that a pattern names.
func matching(parts ...string) []string {
	files, err := filepath.Glob(filepath.Join(parts...))
	if err != nil {
		return nil
	}
	return files
}
