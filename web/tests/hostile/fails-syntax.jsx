const attack = ( => 1;
