"""Pure builders of the objects that a benchmark deploys: one file a server or client."""
