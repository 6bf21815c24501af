// Package agent runs next to a server. It prepares the page cache, and samples the node while a trial runs.
package agent

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	mapBytes        = 256 << 20 // of the file, mapped at once to look at its pages
	readBytes       = 1 << 20
	coldTimeout     = 10 * time.Second
	coldPause       = 50 * time.Millisecond
	coldPerMillion  = 10_000
	warmReads       = 3
	warmPerMillion  = 990_000
	partsPerMillion = 1_000_000
)

// residentPartsPerMillion returns the share of a file that is in the page cache. The kernel reports it only to the owner of the
// file.
func residentPartsPerMillion(file *os.File) (int64, error) {
	information, err := file.Stat()
	if err != nil {
		return 0, err
	}
	var resident, pages int64
	pageSize := int64(os.Getpagesize())
	for offset := int64(0); offset < information.Size(); offset += mapBytes {
		length := min(mapBytes, information.Size()-offset)
		there, err := residentPages(file, offset, length)
		if err != nil {
			return 0, err
		}
		resident += there
		pages += (length + pageSize - 1) / pageSize
	}
	if pages == 0 {
		return 0, nil
	}
	return resident * partsPerMillion / pages, nil
}

func residentPages(file *os.File, offset, length int64) (int64, error) {
	mapped, err := unix.Mmap(int(file.Fd()), offset, int(length), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("mmap: %w", err)
	}
	defer unix.Munmap(mapped) // an error cannot be handled
	flags := make([]byte, (len(mapped)+os.Getpagesize()-1)/os.Getpagesize())
	if err := mincore(mapped, flags); err != nil {
		return 0, fmt.Errorf("mincore: %w", err)
	}
	var there int64
	for _, flag := range flags {
		there += int64(flag & 1)
	}
	return there, nil
}

// warm reads the whole file, and repeats this while the resident share grows, because the host may reclaim pages meanwhile.
func warm(ctx context.Context, file *os.File) error {
	return readWhileCacheGrows(
		func() error { return read(ctx, file) },
		func() (int64, error) { return residentPartsPerMillion(file) },
	)
}

func readWhileCacheGrows(read func() error, resident func() (int64, error)) error {
	before := int64(-1)
	for range warmReads {
		if err := read(); err != nil {
			return err
		}
		now, err := resident()
		if err != nil || now >= warmPerMillion || now <= before {
			return err
		}
		before = now
	}
	return nil
}

// read reads the whole file, or until ctx is done.
func read(ctx context.Context, file *os.File) error {
	buffer := make([]byte, readBytes)
	for offset := int64(0); ctx.Err() == nil; {
		number, err := file.ReadAt(buffer, offset)
		offset += int64(number)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// cool drops the file from the page cache. It retries for a while, because pages in use stay.
func cool(_ context.Context, file *os.File) error {
	for deadline := time.Now().Add(coldTimeout); ; time.Sleep(coldPause) {
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			return fmt.Errorf("fdatasync: %w", err)
		}
		if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			return fmt.Errorf("fadvise: %w", err)
		}
		resident, err := residentPartsPerMillion(file)
		if err != nil || resident <= coldPerMillion || time.Now().After(deadline) {
			return err
		}
	}
}
