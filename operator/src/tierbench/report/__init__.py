"""Results as a person reads them: tables, words, plots and a self-contained HTML page. Pure: no input, no output."""
