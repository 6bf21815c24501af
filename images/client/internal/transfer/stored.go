package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"tierbench.io/client/internal/contract"
)

// checkStored compares what the server has stored with what was sent, and removes it, so that the next trial finds the same
// server. All of this is after the time of the trial.
func (t *Target) checkStored(ctx context.Context, outcomes []outcome) {
	for index := range outcomes {
		address := t.Options.address(index).String()
		if outcomes[index].err == nil {
			outcomes[index].err = t.Options.persist(ctx, "NotStored", address, func() error { return t.compare(ctx, address) })
		}
		if response, err := ask(ctx, t.Options.client(requestTimeout), http.MethodDelete, address); err == nil {
			response.Body.Close() // a file that stays is replaced by the next one
		}
	}
}

// compare compares the length of a stored file, and its content if there is a digest.
func (t *Target) compare(ctx context.Context, address string) error {
	method, timeout := http.MethodHead, requestTimeout
	if t.digest != "" {
		method, timeout = http.MethodGet, t.Options.Limit
	}
	response, err := ask(ctx, t.Options.client(timeout), method, address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode != http.StatusOK:
		return fatal("NotStored", fmt.Sprintf("%s: %s: check that nothing else writes to the server", address, response.Status))
	case response.ContentLength != t.Options.Size:
		return fatal("WrongLength", fmt.Sprintf("%s: the server has stored %d bytes instead of %d: check that nothing else writes to it",
			address, response.ContentLength, t.Options.Size))
	case t.digest == "":
		return nil
	}
	digest := sha256.New()
	if _, err := io.Copy(digest, response.Body); err != nil {
		return retry(contract.Truncated, err)
	}
	if hex.EncodeToString(digest.Sum(nil)) != t.digest {
		return fatal("WrongDigest", address+": the SHA-256 of what the server has stored differs from what was sent: check the server's node")
	}
	return nil
}
