"""Progress of a learner: journal, certificates, history, merging of records."""
