"""What a learner has passed: the journal, certificates, history, merging records."""
